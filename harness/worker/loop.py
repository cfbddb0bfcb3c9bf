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
not decide it. A cell's first trial chooses it for all: percentiles of other windows are others.

An activity that waits for its input has ``fetch`` beside ``step``: the loop times it apart, one
clock read before it and one after, and a window says how long was waited. One that reads in epochs
has ``epochs``: no window crosses the end of one, and between two the loop turns it over and says
what it was. Where reading is the work, phases last for whole epochs, at least one each.
In the warm-up's first epoch a window is one step, after which its batch is looked at.

Checkpoints are taken between two windows, after every so many steps, and timed apart; no window
crosses one. Where saving is the work, it lies within the window. After the measured phase comes one
more, which proves that it brings the state back (``checkpoints/timed.py``). What was timed is
examined behind the loop (``gate/timed_updates.py``).

Where a trial takes turns with the others of its block, the measured phase comes in stretches of
whole windows, between which it stands still (``windows/turns.py``).

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
from typing import TYPE_CHECKING, Deque, Iterable, Iterator, Optional

from harness.worker.contracts import Activity
from harness.worker.events import Events
from harness.worker.job import Span
from harness.worker.windows.windows import Clock, Windows, rest

if TYPE_CHECKING:
    from harness.worker.checkpoints.series import Series
    from harness.worker.windows.turns import RankTurns

LONG_STEP_S = 0.005
WINDOW_S = 0.05
WINDOWS = 40
WARMUP_STEPS = 3


def run(
    activity: Activity,
    events: Events,
    *,
    warmup: Span,
    until: Span,
    size: int = 1,
    clock: Clock = time.monotonic_ns,
    checkpoints: Optional[Series] = None,
    turns: Optional[RankTurns] = None,
    window_steps: Optional[int] = None,
) -> int:
    """Warm up, then measure; every rank runs the same windows, or reads the same epochs.

    Gives how many steps a window of the measured phase had.
    """
    windows = Windows(activity, events, size, clock, checkpoints)
    with _collector_off():
        windows.turn()
        windows.begin("warm-up")
        windows.take(1)
        gc.collect()  # or what the first step threw away would be frozen too
        gc.freeze()
        recent = _warm_up(windows, warmup, until)
        steps = window_steps or steps_per_window(_median(recent), until)
        if turns is None:
            windows.begin("measure")
            while windows.is_amid_epoch() or not windows.is_over(until):
                windows.take(rest(steps, until, windows.done))
        else:
            # the shortest: a neighbour that slowed a short warm-up must not make steps look so long
            # that the block gets only a round or two
            turns.take(windows, steps, min(recent))
        windows.prove()
    return steps


def steps_per_window(step_s: float, until: Span) -> int:
    """Choose k from the seconds that a step takes."""
    if step_s > LONG_STEP_S:
        return 1
    length_s = WINDOW_S if until.seconds is None else min(WINDOW_S, until.seconds / WINDOWS)
    # Too short for the clock to see: read as a nanosecond.
    steps = max(1, round(length_s / max(step_s, 1e-9)))
    return steps if until.steps is None else min(steps, max(1, until.steps // WINDOWS))


def _warm_up(windows: Windows, warmup: Span, until: Span) -> Deque[float]:
    """Warm up; give the seconds that a step took in the last windows."""
    recent: Deque[float] = deque(maxlen=5)
    windows.restart(done=1)
    steps = 1
    while windows.is_amid_epoch() or windows.fewest() < WARMUP_STEPS or not windows.is_over(warmup):
        recent.append(windows.take(rest(steps, warmup, windows.done)))
        steps = min(2 * steps, steps_per_window(_median(recent), until))
    return recent


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
