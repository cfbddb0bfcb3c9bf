"""Format numbers for people: with a unit, and as many digits as the interval justifies."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.verdicts.results import Estimate, Interval

UNKNOWN = "–"
_DIGITS = 3
_MOST_DIGITS = 5
_SMALL = 1e-4
"""Zeros behind the point are counted by nobody."""


def decimals(value: float, width: float | None = None) -> int:
    """Choose decimals: three significant digits, more where the interval is narrower than that.

    Negative decimals round to tens, hundreds and so on.
    """
    if value == 0 or not math.isfinite(value):
        return 1
    magnitude = int(f"{value:.{_DIGITS - 1}e}".partition("e")[2])  # of 0.9999 that of 1.00
    wanted = _DIGITS - 1 - magnitude
    if width is not None and 0 < width < math.inf:
        wanted = max(wanted, -math.floor(math.log10(width)))
    return min(wanted, _MOST_DIGITS - 1 - magnitude)


def fixed(value: float | None, places: int) -> str:
    """Print with so many decimals, thousands apart, a true minus sign."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{round(value, places):,.{max(0, places)}f}".replace("-", "−")


def number(value: float | None) -> str:
    """Print three significant digits."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if 0 < abs(value) < _SMALL:
        return f"{value:.2e}".replace("-", "−", 1) if value < 0 else f"{value:.2e}"
    return fixed(value, decimals(value))


def _places(value: float, interval: Interval | None) -> int:
    return decimals(value, interval.high - interval.low if interval else None)


def with_interval(value: float | None, interval: Interval | None) -> tuple[str, str]:
    """Print a value and its interval with the same decimals: ``31.2`` and ``[30.8, 31.6]``."""
    if value is None:
        return UNKNOWN, UNKNOWN
    places = _places(value, interval)
    if interval is None:
        return fixed(value, places), UNKNOWN
    return (
        fixed(value, places),
        f"[{fixed(interval.low, places)}, {fixed(interval.high, places)}]",
    )


def estimate(of: Estimate | None) -> tuple[str, str]:
    """Print an estimate's value and interval."""
    return with_interval(of.value, of.interval) if of else (UNKNOWN, UNKNOWN)


def span(interval: Interval | None, value: float) -> str:
    """Print an interval inside a sentence: ``1.22–1.28``."""
    if interval is None:
        return UNKNOWN
    places = _places(value, interval)
    return f"{fixed(interval.low, places)}–{fixed(interval.high, places)}"


def ratio(value: float | None, interval: Interval | None = None) -> str:
    """Print a ratio with at least two decimals, as comparisons are read."""
    if value is None:
        return UNKNOWN
    return fixed(value, min(max(2, _places(value, interval)), 4) if value < 100 else 0)


def ratio_span(interval: Interval | None, value: float | None) -> str:
    """Print the interval of a ratio with the ratio's decimals."""
    if interval is None or value is None:
        return UNKNOWN
    places = min(max(2, _places(value, interval)), 4) if value < 100 else 0
    return f"{fixed(interval.low, places)}–{fixed(interval.high, places)}"


def ratio_bracket(interval: Interval | None, value: float | None) -> str:
    """Print the interval of a ratio as tables do; nothing where there is none."""
    if interval is None:
        return ""
    return f"[{ratio_span(interval, value).replace('–', ', ')}]"


def seconds(value: float | None) -> str:
    """Print a duration in the unit people would say it in."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value >= 36_000:
        return f"{number(value / 3600)} h"
    if value >= 600:
        return f"{number(value / 60)} min"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{number(value / scale)} {unit}"
    return f"{number(value / 1e-9)} ns"


def size(value: float | None) -> str:
    """Print an amount of memory in binary units."""
    if value is None:
        return UNKNOWN
    for unit, scale in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= scale:
            return f"{number(value / scale)} {unit}"
    return f"{value:.0f} B"


def share(value: float | None) -> str:
    """Print a fraction as per cent."""
    if value is None:
        return UNKNOWN
    return f"{fixed(value * 100, 0 if value >= 0.1 else 1)} %"


def share_in_tenths(value: float) -> str:
    """Print a fraction whose interval is known, as sentences say it."""
    return f"{fixed(value * 100, 1)} %"


def count(value: float | None) -> str:
    """Print a whole number in full."""
    return UNKNOWN if value is None else f"{round(value):,}"


def moment(wall_ns: int | None) -> str:
    """Print a point in time, in UTC, to the minute."""
    if wall_ns is None:
        return UNKNOWN
    try:
        return datetime.fromtimestamp(wall_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):  # no clock ever said so
        return UNKNOWN
