"""Take the windows of the timed loop: one after the other, each said with what was seen in it.

The rules of a window stand in ``loop.py``: nothing but work lies between its two clock reads.
"""

from __future__ import annotations

import gc
from itertools import repeat
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Optional, Tuple

from harness.worker.contracts import Activity, door
from harness.worker.events import Events
from harness.worker.job import Span

if TYPE_CHECKING:
    from harness.worker.checkpoints.series import Series
    from harness.worker.checkpoints.timed import Timed

FLUSH_NS = 500_000_000

Clock = Callable[[], int]


class Windows:
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
        self.events = events
        self._size = size
        self.clock = clock
        self._device_steps = door(activity, "device_steps")
        self._fetch = door(activity, "fetch")
        self._epochs = door(activity, "epochs")
        self._epoch_first = 0
        self._checkpoints: Optional[Timed] = None
        if checkpoints is not None:
            from harness.worker.checkpoints.timed import Timed  # most trials take none

            self._checkpoints = Timed(checkpoints, events, clock, self._meet)
        self._phase = ""
        self.turn_number: Optional[int] = None
        """Of windows that are a part of a turn."""
        self._first = 0
        self._flushed = 0
        self._began = 0
        self.done = 0

    def begin(self, phase: str) -> None:
        """Say that a phase begins, and count from here."""
        self._phase = phase
        if self._epochs is not None:
            self._epochs.is_warm_up = phase == "warm-up"
        self.events.say("phase", name=phase, t=self.clock())
        self._flush()
        self.restart(done=0)

    def restart(self, done: int) -> None:
        """Count time from here, and steps from ``done``."""
        self.done = done
        self._began = self.clock()

    def is_over(self, span: Span) -> bool:
        """Tell whether the phase has lasted long enough, the same on every rank."""
        elapsed_s = self._agree((self.clock() - self._began) / 1e9)
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
            self.events.say(
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
        step, sync, clock = self._activity.step, self._activity.sync, self.clock
        start = clock()
        for _ in rounds:
            step()
        sync()
        return start, clock(), None

    def _fetching(self, rounds: Iterable[None]) -> Tuple[int, int, Optional[int]]:
        step, sync, clock = self._activity.step, self._activity.sync, self.clock
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
        step, sync, clock = self._activity.step, self._activity.sync, self.clock
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
        say = self.events.say
        more: Dict[str, Any] = {} if waited is None else {"waited": waited}
        if self.turn_number is not None:
            more["turn"] = self.turn_number
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
        self.events.flush()
        gc.collect()
        self._flushed = self.clock()

    def _meet(self) -> None:
        """Go on when every rank is here."""
        self._agree(0.0)

    def _agree(self, value: float) -> float:
        return value if self._size == 1 else self._activity.agree(value)


def rest(steps: int, span: Span, done: int) -> int:
    """Cut a window where the steps asked for end."""
    return steps if span.steps is None else max(1, min(steps, span.steps - done))
