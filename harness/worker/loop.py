"""The timed loop: the only place that reads a clock around work.

    open → build → warm-up → measure → close         loop.py does the middle two, as follows

    say phase warm-up
    window of 1 step                                 time to first step, compilation included
    until `warmup` is over, and 3 steps are done:    its seconds count from the first step's end
        window of as many steps as seem right so far, at most twice as many as before
    say phase measure
    until `until` is over:
        window of k steps                            k stays; the last one may be cut to fit

    window of k steps:
        clock; k times step(); sync(); clock
        say window, values, device-steps
        twice a second: flush what was said, collect garbage
        ranks agree on what they saw, which also lets them start the next window together

k is 1 when a step exceeds 5 ms; else it makes a window of 50 ms, or as much shorter as 40 windows
need. It is chosen from the median of the last five warm-up windows, so that a late compilation does
not decide it.

An activity that waits for its input has ``fetch`` beside ``step``: the loop times it apart, one
clock read before it and one after, and a window says how long was waited. One that reads in epochs
has ``epochs``: no window crosses the end of one, and between two the loop turns it over and says
what it was. Where reading is the work, phases last for whole epochs, at least one each.
In the warm-up's first epoch a window is one step, after which its batch is looked at.

Checkpoints are taken between two windows, after every so many steps, and timed apart; no window
crosses one. Where saving is the work, it lies within the window. After the measured phase comes one
more, which proves that it brings the state back (``checkpoints/timed.py``); last, what was timed is
examined (``gate/timed_updates.py``).

Between the two clock reads nothing is formatted, written or allocated. Python's cyclic collector is
off and what start-up made is frozen: a collection inside a window is charged to whichever step it
hits, grows with what the framework has loaded, and looks like noise of the machine. It runs between
windows instead. Reference counting goes on as ever.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING, Callable, Deque, Iterable, Iterator, Optional, Tuple

from harness.worker.contracts import Activity, door
from harness.worker.events import Events
from harness.worker.job import Span

if TYPE_CHECKING:
    from harness.worker.checkpoints.series import Series
    from harness.worker.checkpoints.timed import Timed
    from harness.worker.gate.timed_updates import TimedUpdates

LONG_STEP_S = 0.005
WINDOW_S = 0.05
WINDOWS = 40
WARMUP_STEPS = 3
FLUSH_NS = 500_000_000

Clock = Callable[[], int]


def run(
    activity: Activity,
    events: Events,
    *,
    warmup: Span,
    until: Span,
    size: int = 1,
    clock: Clock = time.monotonic_ns,
    checkpoints: Optional[Series] = None,
    proof: Optional[TimedUpdates] = None,
) -> None:
    """Warm up, then measure; every rank runs the same windows, or reads the same epochs."""
    windows = _Windows(activity, events, size, clock, checkpoints)
    with _collector_off():
        windows.turn()
        windows.begin("warm-up")
        windows.take(1)
        gc.collect()  # or what the first step threw away would be frozen too
        gc.freeze()
        steps = _warm_up(windows, warmup, until)
        windows.begin("measure")
        while windows.is_amid_epoch() or not windows.is_over(until):
            windows.take(_rest(steps, until, windows.done))
        windows.prove()
        if proof is not None:
            windows.begin("examine")
            proof.close(steps, clock)


def steps_per_window(step_s: float, until: Span) -> int:
    """Choose k from the seconds that a step takes."""
    if step_s > LONG_STEP_S:
        return 1
    length_s = WINDOW_S if until.seconds is None else min(WINDOW_S, until.seconds / WINDOWS)
    # Too short for the clock to see: read as a nanosecond.
    steps = max(1, round(length_s / max(step_s, 1e-9)))
    return steps if until.steps is None else min(steps, max(1, until.steps // WINDOWS))


def _warm_up(windows: _Windows, warmup: Span, until: Span) -> int:
    recent: Deque[float] = deque(maxlen=5)
    windows.restart(done=1)
    steps = 1
    while windows.is_amid_epoch() or windows.fewest() < WARMUP_STEPS or not windows.is_over(warmup):
        recent.append(windows.take(_rest(steps, warmup, windows.done)))
        steps = min(2 * steps, steps_per_window(_median(recent), until))
    return steps_per_window(_median(recent), until)


def _rest(steps: int, span: Span, done: int) -> int:
    """Cut a window where the steps asked for end."""
    return steps if span.steps is None else max(1, min(steps, span.steps - done))


class _Windows:
    """Take windows one after the other and say what was seen; counts steps and time of a phase."""

    def __init__(
        self,
        activity: Activity,
        events: Events,
        size: int,
        clock: Clock,
        checkpoints: Optional[Series],
    ) -> None:
        self._activity = activity
        self._events = events
        self._size = size
        self._clock = clock
        self._device_steps = door(activity, "device_steps")
        self._fetch = door(activity, "fetch")
        self._epochs = door(activity, "epochs")
        self._epoch_first = 0
        self._checkpoints: Optional[Timed] = None
        if checkpoints is not None:
            from harness.worker.checkpoints.timed import Timed  # most trials take none

            self._checkpoints = Timed(checkpoints, events, clock, self._meet)
        self._phase = ""
        self._first = 0
        self._flushed = 0
        self._began = 0
        self.done = 0

    def begin(self, phase: str) -> None:
        """Say that a phase begins, and count from here."""
        self._phase = phase
        if self._epochs is not None:
            self._epochs.is_warm_up = phase == "warm-up"
        self._events.say("phase", name=phase, t=self._clock())
        self._flush()
        self.restart(done=0)

    def restart(self, done: int) -> None:
        """Count time from here, and steps from ``done``."""
        self.done = done
        self._began = self._clock()

    def is_over(self, span: Span) -> bool:
        """Tell whether the phase has lasted long enough, the same on every rank."""
        elapsed_s = self._agree((self._clock() - self._began) / 1e9)
        if span.seconds is not None:
            return elapsed_s >= span.seconds
        return self.fewest() >= (span.steps or 0)

    def fewest(self) -> int:
        """Count the phase's steps; ranks whose epochs are not equally long go by the shortest."""
        if self._epochs is None or not self._epochs.whole:
            return self.done
        return -round(self._agree(float(-self.done)))

    def is_amid_epoch(self) -> bool:
        """Tell whether the phase must go on because what is read would not be whole."""
        epochs = self._epochs
        return epochs is not None and epochs.whole and self._first > self._epoch_first

    def turn(self) -> None:
        """Turn the epoch over, where there are any, and say what it was."""
        if self._epochs is None:
            return
        told = self._epochs.turn()
        if told is not None:
            steps = self._first - self._epoch_first
            self._events.say(
                "epoch", phase=self._phase, first=self._epoch_first, steps=steps, **told
            )
        self._epoch_first = self._first

    def prove(self) -> None:
        """Prove that a checkpoint brings the state back, where any are taken."""
        if self._checkpoints is not None:
            checkpoints, self._checkpoints = self._checkpoints, None
            self.begin("prove")
            checkpoints.prove(self._first, self.take, self._activity.sync)

    def take(self, steps: int) -> float:
        """Time one window; give the slowest rank's seconds per step."""
        if self._epochs is not None:
            steps = 1 if self._epochs.is_looked_at else min(steps, self._epochs.left())
        if self._checkpoints is not None:
            steps = min(steps, self._checkpoints.due(self._first))
        window = self._bare if self._fetch is None else self._fetching
        if self._checkpoints is not None and self._checkpoints.lies_within(self._first, steps):
            window = self._saving
        start, end, waited = window(repeat(None, steps))
        self._say(steps, start, end, waited)
        if self._checkpoints is not None:
            self._checkpoints.follow(self._phase, self._first, start, end)
        if self._epochs is not None and self._epochs.is_looked_at:
            self._epochs.look()
        if self._epochs is not None and not self._epochs.left():
            self.turn()
        return self._agree((end - start) / steps / 1e9)

    def _bare(self, rounds: Iterable[None]) -> Tuple[int, int, Optional[int]]:
        step, sync, clock = self._activity.step, self._activity.sync, self._clock
        start = clock()
        for _ in rounds:
            step()
        sync()
        return start, clock(), None

    def _fetching(self, rounds: Iterable[None]) -> Tuple[int, int, Optional[int]]:
        step, sync, clock = self._activity.step, self._activity.sync, self._clock
        fetch, waited = self._fetch, 0
        assert fetch is not None
        start = clock()
        for _ in rounds:
            before = clock()
            fetch()
            waited += clock() - before
            step()
        sync()
        return start, clock(), waited

    def _saving(self, rounds: Iterable[None]) -> Tuple[int, int, Optional[int]]:
        step, sync, clock = self._activity.step, self._activity.sync, self._clock
        timed = self._checkpoints
        assert timed is not None
        save, done = timed.save, self._first + timed.due(self._first)
        start = clock()
        for _ in rounds:
            step()
        sync()
        save(done)
        return start, clock(), None

    def _say(self, steps: int, start: int, end: int, waited: Optional[int]) -> None:
        say = self._events.say
        more = {} if waited is None else {"waited": waited}
        say(
            "window",
            phase=self._phase,
            first=self._first,
            steps=steps,
            start=start,
            end=end,
            **more,
        )
        self._first += steps
        self.done += steps
        values = self._activity.values()
        if values:
            say("values", step=self._first - 1, values=dict(values))
        if self._device_steps is not None:
            say("device-steps", last=self._first - 1, seconds=list(self._device_steps()))
        if end - self._flushed >= FLUSH_NS:
            self._flush()

    def _flush(self) -> None:
        self._events.flush()
        gc.collect()
        self._flushed = self._clock()

    def _meet(self) -> None:
        """Go on when every rank is here."""
        self._agree(0.0)

    def _agree(self, value: float) -> float:
        return value if self._size == 1 else self._activity.agree(value)


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


@contextmanager
def _collector_off() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()
