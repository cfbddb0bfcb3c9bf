"""Say why nothing ran on a device: the host had not launched it, or it had and it had not begun.

An idle stretch ends where the next work begins. Up to the return of the call that launched it the
device waited for the host; from there on for its own scheduling, for another stream or for a copy.
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional, Sequence

from harness.worker.attribution.account import Operation, Ran, Span
from harness.worker.attribution.marks import GAPS, Place

NOT_LAUNCHED = "not launched yet"
NOT_BEGUN = "launched and not begun"
LAUNCH_UNKNOWN = "launch not traced"
AFTER_THE_LAST = "after the last kernel"
_LANE = "idle"


class Work(NamedTuple):
    """What ran on a device, in nanoseconds."""

    start: int
    end: int
    launched: Optional[int]
    """When the call returned that launched it; None if that was not traced."""


def idle(steps: Sequence[Span], works: Sequence[Work]) -> Iterator[Ran]:
    """Give each step's idle stretches, by cause."""
    waiting = sorted(works)
    for start, end in steps:
        until = start
        for one in (work for work in waiting if work.end > start and work.start < end):
            if one.start > until:
                yield from _before(one, until)
            until = max(until, one.end)
        yield from _ran(AFTER_THE_LAST, until, end)


def _before(work: Work, since: int) -> Iterator[Ran]:
    if work.launched is None:
        yield from _ran(LAUNCH_UNKNOWN, since, work.start)
        return
    handed_over = min(max(work.launched, since), work.start)
    yield from _ran(NOT_LAUNCHED, since, handed_over)
    yield from _ran(NOT_BEGUN, handed_over, work.start)


def _ran(why: str, start: int, end: int) -> List[Ran]:
    if start >= end:
        return []
    return [Ran(start, end, _LANE, Place("", GAPS), Operation(why, "", ""))]
