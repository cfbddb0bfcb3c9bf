"""Take the windows of a program that steps by itself, such as ``caffe train``.

    what it prints → marks (steps done, wall time, values) → windows of our clock    only here

The program says when it had done how many steps; each stretch between two of its marks is a window,
marked ``clock = external``. Its times are wall-clock times. They become times of our monotonic
clock by one reading of both, taken as it starts; a mark that is not between that start and now
shows a clock in another time zone or one that was set, and ends the trial. Nothing of ours runs
between two marks but the reading of the program's words.

The phases follow the rules of ``loop.py``: the first window gives the time to the first step, the
warm-up then lasts as long as asked and for 3 steps at least, and a window counts for the phase that
it began in.
"""

from __future__ import annotations

import time
from typing import Callable, Iterator, Mapping, NamedTuple, Optional

from harness.worker.events import Events
from harness.worker.job import Span
from harness.worker.loop import WARMUP_STEPS
from harness.worker.windows.windows import FLUSH_NS

TOLERANCE_NS = 1_000_000_000


class Mark(NamedTuple):
    """Where the program was when it said so; the first one, 0 steps, is its start."""

    steps: int
    wall_ns: int
    values: Mapping[str, float]


Marks = Callable[[Span], Iterator[Mark]]
"""Start the program and hand on its marks; stop it when closed."""


class Clocks(NamedTuple):
    """One reading of both clocks."""

    wall_ns: int
    mono_ns: int

    def convert(self, wall_ns: int) -> int:
        """Give a wall-clock time as a time of our clock."""
        return self.mono_ns + wall_ns - self.wall_ns


class StrangeClock(Exception):
    """Say that a program's times cannot be ours."""


class EndedEarly(Exception):
    """Say that a program ended before it was told to."""


def read_clocks() -> Clocks:
    """Read both clocks, as close together as can be."""
    return Clocks(time.time_ns(), time.monotonic_ns())


def run(
    marks: Marks,
    events: Events,
    *,
    warmup: Span,
    until: Span,
    clocks: Callable[[], Clocks] = read_clocks,
) -> None:
    """Record windows until both phases are over, then stop the program."""
    both = clocks()
    phases = _Phases(events, warmup, until)
    phases.begin("warm-up", both.mono_ns)
    stream = marks(until)
    before: Optional[Mark] = None
    try:
        for mark in stream:
            _assert_plausible(both, mark, clocks().wall_ns)
            if before is not None and phases.is_over_after(
                before, mark, both.convert(before.wall_ns), both.convert(mark.wall_ns)
            ):
                return
            before = mark
    finally:
        stream.close()  # type: ignore[attr-defined]
    raise EndedEarly(
        "the program ended after {} steps, before it was told to".format(
            before.steps if before else 0
        )
    )


class _Phases:
    """Say windows, and tell when the last phase is over."""

    def __init__(self, events: Events, warmup: Span, until: Span) -> None:
        self._events = events
        self._spans = {"warm-up": warmup, "measure": until}
        self._phase = ""
        self._began = 0
        self._done = 0
        self._flushed = 0

    def begin(self, phase: str, t: int) -> None:
        self._events.say("phase", name=phase, t=t)
        self._events.flush()
        self._phase, self._began, self._done = phase, t, 0

    def is_over_after(self, before: Mark, mark: Mark, start: int, end: int) -> bool:
        steps = mark.steps - before.steps
        self._events.say(
            "window",
            phase=self._phase,
            first=before.steps,
            steps=steps,
            start=start,
            end=end,
            clock="external",
        )
        if mark.values:
            self._events.say("values", step=mark.steps - 1, values=dict(mark.values))
        self._done += steps
        if before.steps == 0:
            self._began = end  # the warm-up's seconds count from the first step's end
        if end - self._flushed >= FLUSH_NS:
            self._events.flush()
            self._flushed = end
        if not self._has_lasted((end - self._began) / 1e9):
            return False
        if self._phase == "measure":
            return True
        self.begin("measure", end)
        return False

    def _has_lasted(self, seconds: float) -> bool:
        if self._phase == "warm-up" and self._done < WARMUP_STEPS:
            return False
        span = self._spans[self._phase]
        return self._done >= (span.steps or 0) if span.seconds is None else seconds >= span.seconds


def _assert_plausible(both: Clocks, mark: Mark, now_ns: int) -> None:
    early = both.wall_ns - mark.wall_ns
    late = mark.wall_ns - now_ns
    if max(early, late) > TOLERANCE_NS:
        raise StrangeClock(
            "the program's clock is {:.1f} s {} ours: it ignores TZ=UTC, or a clock was set".format(
                max(early, late) / 1e9, "behind" if early > late else "ahead of"
            )
        )
