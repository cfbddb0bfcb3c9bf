"""Draw ratios around 1: a dot and its interval per cell, slower left, faster right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis import numbers
from harness.sections.contract.blocks import Ratio
from reports.charts.svg import Scale, element, log_ticks, picture, text, ticks

_WIDTH, _RIGHT, _ROW, _TOP = 760.0, 140.0, 26.0, 10.0
_NARROW, _TALL, _LOW, _REACH = 354.0, 58.0, 0.8, 11.0
_CHARACTER, _WIDEST = 6.6, 300.0
_LEAST_REACH = 0.06
_WIDE, _ROOM = 4.0, 44.0


def _ticks(x: Scale) -> list[float]:
    """Choose 1 and round values that leave each other room."""
    wide = x.high / x.low > _WIDE
    kept = [1.0]
    for value in log_ticks(x.low, x.high) if wide else ticks(x.low, x.high, 5):
        if all(abs(x(value) - x(other)) >= _ROOM for other in kept):
            kept.append(value)
    return kept


def _stretches(rows: int, bottom: float, *, is_narrow: bool) -> Iterator[tuple[float, float]]:
    """Give from where to where upright lines go; in a narrow chart none goes through words."""
    if not is_narrow:
        yield _TOP - 4, bottom
        return
    for row in range(rows):
        middle = _TOP + (row + _LOW) * _TALL
        yield middle - _REACH, middle + _REACH


def ratios(lines: Sequence[Ratio], *, name: str, label: str, narrow: bool = False) -> str:
    """Draw all lines on one logarithmic axis, so that twice and half lie equally far out.

    A narrow chart has its words above each line instead of beside it.
    """
    ends = [1 - _LEAST_REACH, 1 + _LEAST_REACH]
    for line in lines:
        ends += [line.value]
        ends += [line.interval.low, line.interval.high] if line.interval else []
    names = min(_WIDEST, 20 + _CHARACTER * max(len(line.name) for line in lines))
    x = Scale(min(ends), max(ends), names, _WIDTH - _RIGHT, log=True)
    if narrow:
        x = Scale(min(ends), max(ends), 8, _NARROW - 8, log=True)
    tall = _TALL if narrow else _ROW
    bottom = _TOP + len(lines) * tall
    drawn = []
    for value in _ticks(x):
        kind = "axis" if value == 1 else "grid"
        for upper, lower in _stretches(len(lines), bottom, is_narrow=narrow):
            drawn.append(element("line", class_=kind, x1=x(value), x2=x(value), y1=upper, y2=lower))
        drawn.append(
            text(x(value), bottom + 16, f"{value:g} ×", text_anchor="middle", class_="soft")
        )
    for row, line in enumerate(lines):
        middle = _TOP + (row + (_LOW if narrow else 0.5)) * tall
        drawn.append(text(0, middle - 32 if narrow else middle + 4, line.name))
        if line.interval:
            low, high = x(line.interval.low), x(line.interval.high)
            drawn.append(element("line", class_="whisker", x1=low, x2=high, y1=middle, y2=middle))
        drawn.append(element("circle", class_="p1", cx=x(line.value), cy=middle, r=4.5))
        said = f"{numbers.ratio(line.value, line.interval)} ×, {line.answer}"
        at = (0.0, middle - 16) if narrow else (_WIDTH - _RIGHT + 14, middle + 4)
        drawn.append(text(*at, said))
    return picture(
        _NARROW if narrow else _WIDTH, bottom + 26, "".join(drawn), label=label, name=name
    )
