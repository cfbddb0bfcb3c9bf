"""Write SVG: elements, escaped text, and axes with round ticks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import inf

LINE = 14.0
"""From one line of text to the next."""
_FIXED = "\N{NO-BREAK SPACE}"


def coordinate(value: float) -> str:
    """Print a coordinate as short as it can be at a tenth of a pixel."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def element(name: str, content: str = "", **attributes: float | str | None) -> str:
    """Write one element; ``class_`` is class, underscores are dashes, None is left out."""
    said = []
    for key, value in attributes.items():
        if value is None:
            continue
        text = coordinate(value) if isinstance(value, int | float) else escape(value)
        said.append(f' {key.rstrip("_").replace("_", "-")}="{text}"')
    joined = "".join(said)
    return f"<{name}{joined}>{content}</{name}>" if content else f"<{name}{joined}/>"


def text(x: float, y: float, content: str, **attributes: float | str | None) -> str:
    """Write real text, which prints, scales and can be found."""
    return element("text", escape(content), x=x, y=y, **attributes)


def broken(name: str, most: int) -> list[str]:
    """Break a name between its parts into lines of so many letters."""
    parts = name.replace(" ", _FIXED).replace(f"{_FIXED}·{_FIXED}", f"{_FIXED}· ")
    return [one.replace(_FIXED, " ") for one in textwrap.wrap(parts, most)]


def stacked(x: float, y: float, lines: Sequence[str]) -> list[str]:
    """Write lines of text below each other."""
    return [text(x, y + at * LINE, one) for at, one in enumerate(lines)]


def more_height(lines: Sequence[object]) -> float:
    """Say by how much lines are higher than one."""
    return (len(lines) - 1) * LINE


def picture(width: float, height: float, content: str, *, label: str, name: str) -> str:
    """Wrap a drawing with its size, its name for screen readers and its file name."""
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {coordinate(width)} {coordinate(height)}" '
        f'width="{coordinate(width)}" height="{coordinate(height)}" data-name="{escape(name)}" '
        f'aria-label="{escape(label)}">{content}</svg>'
    )


def whisker(low: float, high: float, y: float) -> list[str]:
    """Draw an interval over a bar, set off from it."""
    return [
        element("line", class_=kind, x1=low, x2=high, y1=y, y2=y) for kind in ("halo", "whisker")
    ]


def free_level(wanted: float, taken: list[float], lowest: float = inf) -> float:
    """Give the first level from the wanted one at which no other words stand: down, then up."""
    level, step = wanted, 1.0
    while any(abs(level - other) < LINE for other in taken):
        level += step
        if level > lowest:
            level, step = wanted, -1.0
    taken.append(level)
    return level


@dataclass(frozen=True)
class Scale:
    """A mapping from numbers to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Place a value."""
        if self.log:
            low, high, at = math.log(self.low), math.log(self.high), math.log(value)
        else:
            low, high, at = self.low, self.high, value
        return self.start + (self.end - self.start) * (at - low) / ((high - low) or 1.0)


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Choose round values between two ends."""
    if not high > low:
        return [low]
    raw = (high - low) / max(wanted, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 2.5, 5) if m * power >= raw), 10 * power)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Choose the powers of ten between two ends, or 1-2-5 steps within one decade."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps: Sequence[int] = (1,) if last - first > 2 else (1, 2, 5)
    found = [m * 10.0**p for p in range(first, last + 1) for m in steps]
    return [value for value in found if low * 0.999 <= value <= high * 1.001]
