"""The proof of what was timed: the activity itself takes updates from states that the host chose.

Every trial whose activity has the doors ``load``, ``give`` and ``state`` goes through them, so that
their use tells an adapter nothing:

    load the starting weights, give the first batch       before the warm-up, and read back
    ... warm-up, measure ...
    steps, sync, and what was computed is looked at       did sync wait for the steps?
    load a state, give a batch, step, sync, state         three times, where the host asks for it
    state                                                 at the end

What is stepped is what was timed: the same objects, compiled code, batch size, precision and
process. Dropouts drop. Given is a tensor folder (``tensors.py``), all of float32:

    initial/PARAMETER         the starting weights and running statistics
    first/input, first/target the first batch
    start/NAME                the state before each update
    pictures                  different samples; ``batches`` in ``about`` says for each update which
                              of them fill the batch, in order
    batch/T/target            what they are compared with, T = 1 .. updates

and made, of each tensor as many items as ``thin`` in ``about`` allows:

    after/T/NAME              the state after update T

A NAME is a PARAMETER as in ``subject.py``, or PARAMETER/MOMENT for what the optimiser keeps of it
(``MOMENTS`` in ``network/workload.py``), or ``step``: how many updates the optimiser has made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional

from harness.worker.contracts import door
from harness.worker.gate import starting_point, tensors
from harness.worker.gate.subject import put_thinned
from harness.worker.gate.tensors import Repeated, Writer

if TYPE_CHECKING:
    from harness.worker.contracts import Activity

DOORS = ("load", "give", "state")
REPEATS = 3
MOST_STEPS = 8
"""Some frameworks queue no more than a few dozen steps."""
MOST_AFTER = 0.5
"""Share of the time of some steps that may pass after sync; an honest one leaves nothing."""


class SyncTooEarly(Exception):
    """Say that the steps were not done when ``sync`` returned."""


class TimedUpdates:
    """One trial's proof: how the activity is opened, examined and read."""

    def __init__(self, activity: Activity, given: str, made: Optional[str]) -> None:
        self._activity: Any = activity
        self._given = tensors.read(given)
        self._made = made
        self.start: Dict[str, Optional[str]] = {}
        """Digests of what it started from, and what was not as given (``starting_point.py``)."""

    def open(self) -> None:
        """Load the starting weights and give the first batch."""
        initial, first = self._given.under("initial/"), self._given.under("first/")
        self._activity.load(initial)
        self._activity.give(first["input"], first["target"])
        self.start = starting_point.read(self._activity, initial, first)

    def close(self, steps: int, clock: Callable[[], int]) -> None:
        """Examine the activity where the host asks for it, then read its state."""
        starting_point.require_fresh_batches(self._activity)
        began = clock()
        if self._made is not None:
            self._wait(min(steps, MOST_STEPS), clock)
            made = self._update(self._made)
            made.close({"seconds": (clock() - began) / 1e9})
        self._read_state()

    def _wait(self, steps: int, clock: Callable[[], int]) -> None:
        """Refuse a sync that returns while most of the work is still to be done."""
        share = min(self._share_after_sync(steps, clock) for _ in range(REPEATS))
        if share > MOST_AFTER:
            raise SyncTooEarly(
                "sync returned before the steps were done: {:.0f} % of their time came after it. "
                "What was timed is how fast steps are queued, not how fast they are computed"
                "".format(100 * share)
            )

    def _share_after_sync(self, steps: int, clock: Callable[[], int]) -> float:
        activity = self._activity
        start = clock()
        for _ in range(steps):
            activity.step()
        activity.sync()
        synced = clock()
        self._look()
        looked = clock()
        self._look()  # once more, when certainly nothing runs: what looking itself takes
        idle = clock() - looked
        return (looked - synced - idle) / max(1, looked - start)

    def _look(self) -> None:
        self._activity.values()
        next(iter(self._activity.state()))

    def _update(self, place: str) -> Writer:
        given, activity = self._given, self._activity
        pictures, made = given.tensors["pictures"], Writer(place)
        for number, rows in enumerate(given.about["batches"], start=1):
            shape = (len(rows), *pictures.shape[1:])
            batch = Repeated(pictures.path, shape, pictures.dtype, tuple(rows))
            activity.load(given.under("start/"))
            activity.give(batch, given.tensors["batch/{}/target".format(number)])
            activity.step()
            activity.sync()
            prefix = "after/{}/".format(number)
            put_thinned(made, prefix, activity.state(), given.about["thin"], "float32")
        return made

    def _read_state(self) -> None:
        for _ in self._activity.state():
            pass


def proof_of(activity: Activity, paths: Mapping[str, str]) -> Optional[TimedUpdates]:
    """Give a trial's proof; None where the host gives nothing for it, or the doors are missing."""
    if "proof" not in paths or any(door(activity, name) is None for name in DOORS):
        return None
    return TimedUpdates(activity, paths["proof"], paths.get("proved"))
