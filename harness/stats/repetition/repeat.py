"""Decide between blocks whether a study has measured enough.

Looking at results as they come and stopping when they please widens every error, so the looks are
declared before the first trial: at which numbers of blocks intervals are judged, and with which
confidence, such that all looks together keep the nominal level (Bonferroni over the looks that
could end the study; Jennison & Turnbull, Group Sequential Methods, 2000, chapter 2, has sharper
boundaries that need a normal model).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from harness.stats.estimate import LEVEL, centre, centre_interval, trials_for

GROWTH = 1.5
"""Each look comes after half as many blocks again."""


@dataclass(frozen=True)
class Schedule:
    """The looks of a study, declared before it starts."""

    looks: tuple[int, ...]
    """Numbers of blocks, growing."""
    level: float
    """Confidence of the intervals at each single look."""


@dataclass(frozen=True)
class Decision:
    """Whether to go on, how far, and why."""

    stop: bool
    next_look: int | None
    """How many blocks there should be at the next look; None when this was the last."""
    why: str
    wide: tuple[str, ...]
    """Cells whose interval is still too wide, or whose comparison is open."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Cells that no further block needs, and after which block none did."""


def declared(looks: Sequence[int], level: float = LEVEL) -> Schedule:
    """Share the error equally between looks."""
    return Schedule(tuple(looks), 1 - (1 - level) / len(looks))


def schedule(first: int, most: int, level: float = LEVEL) -> Schedule:
    """Declare as many looks between ``first`` and ``most`` blocks as growing steps allow.

    The smallest and largest of n trials hold the median with confidence 1 - 2^(1-n); no look is
    declared before its share of the error lets it speak.
    """
    best = declared((most,), level)
    for count in range(2, most + 1):
        each = 1 - (1 - level) / count
        looks = [max(first, trials_for(each))]
        while len(looks) < count - 1:
            looks.append(ceil(looks[-1] * GROWTH))
        if looks[-1] >= most:
            break
        best = declared((*looks, most), level)
    return best


def decide(
    rates: Mapping[str, Sequence[float]],
    *,
    width: float,
    plan: Schedule,
    done: int,
    blocks_left: int | None = None,
) -> Decision:
    """Judge after ``done`` blocks whether every interval is at most ``width`` of its rate wide.

    ``rates`` holds the counted trials of each cell so far (a cell that has none cannot become
    narrow, and is not waited for); ``blocks_left`` is how many more the budget pays for (None: as
    many as were declared).
    """
    known = {name: values for name, values in rates.items() if values}
    wide = tuple(name for name, values in known.items() if _width(values, plan.level) > width)
    if done in plan.looks and not wide:
        why = f"every interval is within {width * 100:.3g} % after {done} blocks"
        return Decision(True, None, why, ())
    later = [look for look in plan.looks if look > done]
    if not later:
        why = f"the declared {plan.looks[-1]} blocks are done; {_cells(len(wide))} still wider"
        return Decision(True, None, f"{why} than {width * 100:.3g} %", wide)
    if blocks_left is not None and blocks_left <= 0:
        why = f"the budget ended after {done} blocks; {_cells(len(wide))} still wider"
        return Decision(True, None, f"{why} than {width * 100:.3g} %", wide)
    return Decision(False, later[0], f"the next look is after {later[0]} blocks", wide)


def _width(values: Sequence[float], level: float) -> float:
    """Give the interval's whole width over the rate; infinite where its level is too low."""
    interval = centre_interval(values, level)
    if interval is None or interval.level < level:
        return float("inf")
    return (interval.high - interval.low) / centre(values)


def _cells(count: int) -> str:
    return "1 cell is" if count == 1 else f"{count} cells are"
