"""The proof of what was timed: the activity itself takes updates from states that the host chose.

Every trial whose activity has the doors ``load``, ``give`` and ``state`` goes through them, so that
their use tells an adapter nothing:

    load the starting weights, give the first batch       before the warm-up, and read back
    ... warm-up, measure ...
    step, sync, state                                     do weights still move where it ended?
    steps, sync, and what was computed is looked at       did sync wait for the steps?
    load a state, give a batch, step, sync, state         three times, where the host asks for it
    step, sync, state                                     and once more from where that ended
    load the starting weights, give the first batch, step where dropouts drop: two to eight times,
                                                          until other masks show in the loss;
                                                          all ranks take the first one's part
    state                                                 at the end

Of several ranks each is given its part of a batch, and each puts what it made into a folder of its
own: the first into the one that was named, the others into folders in there, by number. Where a
rank drives several devices, its ``replicas`` counts them, and ``replica(number)`` is the state of
each.

What is stepped is what was timed: the same objects, compiled code, batch size, precision and
process. Dropouts drop. Given is a tensor folder (``tensors.py``), all of float32:

    initial/PARAMETER         the starting weights and running statistics
    first/input, first/target the first batch
    start/NAME                the state before each update
    pictures                  different samples; ``batches`` in ``about`` says for each update which
                              of them fill the batch, in order
    batch/T/target            what they are compared with, T = 1 .. updates

and made, of each tensor as many items as ``thin`` in ``about`` allows:

    after/T/NAME              the state after update T, T = 1 .. updates + 1; of further ranks at
                              most ``thin_further``

A NAME is a PARAMETER as in ``subject.py``, or PARAMETER/MOMENT for what the optimiser keeps of it
(``MOMENTS`` in ``network/workload.py``), or ``step``: how many updates the optimiser has made.
"""

from __future__ import annotations

import hashlib
import math
import os
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from harness.worker.contracts import Refused, door
from harness.worker.gate import late_work, starting_point, tensors
from harness.worker.gate.losses import are_equal
from harness.worker.gate.rank_equality import share
from harness.worker.gate.subject import MOST_ITEMS, Made, put_thinned, thinned
from harness.worker.gate.tensors import Repeated, Tensor, Writer, Zeros
from harness.worker.network.layers import Network
from harness.worker.network.shapes import has_dropout, parameters, sites
from harness.worker.network.workload import MOMENTS, Training
from harness.worker.place import Place

if TYPE_CHECKING:
    from harness.worker.contracts import Activity

DOORS = ("load", "give", "state")
_KEPT = {moment for moments in MOMENTS.values() for moment in moments}
MOST_RESTARTS = 8
"""Steps from one start, of which two must have different losses where dropouts drop."""


class StandsStill(Refused):
    """Say that a step no longer changed what is trained."""


class CompiledAgain(Refused):
    """Say that the step that was examined is perhaps not the program that was timed."""


class TimedUpdates:
    """One trial's proof: how the activity is opened, examined and read."""

    def __init__(
        self,
        activity: Activity,
        network: Network,
        given: str,
        made: Optional[str],
        place: Place,
    ) -> None:
        self._activity: Any = activity
        self._place = place
        self._given = tensors.read(given)
        self._made = made
        self._learned = tuple(name for one in sites(network) for name, _ in parameters(one))
        self._drops = has_dropout(network)
        self.start: Dict[str, Optional[str]] = {}
        """Digests of what it started from, and what was not as given (``starting_point.py``)."""
        self.restarts: List[float] = []
        """Where dropouts drop: the losses of a step from there, at the end."""

    def open(self) -> None:
        """Load the starting weights and give the first batch."""
        initial, first = self._restart(self._place.rank)
        self.start = starting_point.read(self._activity, initial, first)

    def close(self, steps: int, clock: Callable[[], int]) -> None:
        """Examine the activity where the host asks for it, then read its state."""
        self._require_movement()
        starting_point.require_fresh_batches(self._activity, self._given.under("initial/"))
        began = clock()
        if self._made is not None:
            late_work.refuse(self._activity, self._place.size, steps, clock)
            folders = self._update(self._made)
            for folder in folders:
                folder.close({"seconds": (clock() - began) / 1e9})
        if self._drops:
            self._step_again()
        self._require_one_program()
        self._read_state()

    def _restart(self, rank: int) -> Tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
        """Load the starting weights and give a rank's part of the first batch; give back both."""
        initial, whole = self._given.under("initial/"), self._given.under("first/")
        first = {name: self._part(one, range(one.shape[0]), rank) for name, one in whole.items()}
        self._activity.load(initial)
        self._activity.give(first["input"], first["target"])
        return initial, first

    def _step_again(self) -> None:
        """Step again from the starting weights and the first batch: other masks, another loss.

        A loss that masks hardly touch differs within rounding now and then, so it is asked until
        it differs. Ranks step together, and cannot tell from their own losses when all have seen
        enough. All take the same samples, so that their losses show whether their masks differ.
        """
        for _ in range(MOST_RESTARTS):
            if self._place.size == 1 and len(self.restarts) > 1 and not are_equal(self.restarts):
                break
            self._restart(0)
            self._activity.step()
            self._activity.sync()
            self.restarts.append(float(self._activity.values()["loss"]))

    def _require_movement(self) -> None:
        """Refuse a step that changes neither a weight nor a moment, where the measured phase ended.

        The loss is small there: a step that leaves out its update for that is whole again from
        every state that is loaded. What is no number any more cannot move. Narrow weights come to
        such a rest by themselves, where every update is rounded away and moments stay what they
        decay to: from moments of zero the next update moves these.
        """
        if self._moves():
            return
        self._activity.load(
            {
                name: Zeros("", tuple(shape), "float32")
                for name, shape, _ in self._activity.state()
                if name.rpartition("/")[2] in _KEPT
            }
        )
        if not self._moves():
            raise StandsStill(
                "the step that was timed does not train the network any more: where the measured "
                "phase ended, at a loss of {:.6g}, one more step changes nothing".format(
                    self._activity.values().get("loss", math.nan)
                )
            )

    def _moves(self) -> bool:
        """Take a step, and tell whether it changed anything; read up to the first that moved."""
        before = dict(self._trained())
        self._activity.step()
        self._activity.sync()
        if not math.isfinite(self._activity.values().get("loss", math.nan)):
            return True
        return any(before.get(name) != now for name, now in self._trained())

    def _trained(self) -> Iterator[Tuple[str, bytes]]:
        """Digest items of weights and moments: running statistics move without an update."""
        state = (one for one in self._activity.state() if one[0].startswith(self._learned))
        for name, _, items in thinned(state, MOST_ITEMS, "float32"):
            yield name, hashlib.sha256(items).digest()

    def _require_one_program(self) -> None:
        """Refuse a step that was compiled more than once, for arguments of other kinds."""
        count = door(self._activity, "programs")
        programs = None if count is None else count()
        if programs is not None and programs > 1:
            raise CompiledAgain(
                "the step was compiled to {} programs, for arguments of other types, shapes or "
                "places: what was examined may be another than what was timed".format(programs)
            )

    def _update(self, place: str) -> List[Writer]:
        given, activity = self._given, self._activity
        replicas: int = door(activity, "replicas") or 1
        numbers = range(self._place.rank * replicas, (self._place.rank + 1) * replicas)
        folders = [Writer(os.path.join(place, str(one)) if one else place) for one in numbers]
        last = len(given.about["batches"])
        for update in range(1, last + 1):
            self._begin(update)
            self._put_step(folders, numbers, update)
        self._put_step(folders, numbers, last + 1)
        self._begin(1)
        activity.step()  # no sync behind it, and an update of its own
        self._put_step(folders, numbers, last + 2)
        return folders

    def _begin(self, update: int) -> None:
        """Load the start, and give an update's batch."""
        given, rank = self._given, self._place.rank
        rows = given.about["batches"][update - 1]
        target = given.tensors["batch/{}/target".format(update)]
        self._activity.load(given.under("start/"))
        self._activity.give(
            self._part(given.tensors["pictures"], rows, rank),
            self._part(target, range(target.shape[0]), rank),
        )

    def _put_step(self, folders: Sequence[Writer], numbers: Sequence[int], update: int) -> None:
        """Take a step, and write the state of each device after it."""
        activity = self._activity
        activity.step()
        activity.sync()
        for replica, (number, folder) in enumerate(zip(numbers, folders)):
            state = activity.state() if len(folders) == 1 else activity.replica(replica)
            self._put(folder, "after/{}/".format(update), state, number)

    def _put(self, folder: Writer, prefix: str, state: Iterator[Made], number: int) -> None:
        most, further = self._given.about["thin"], self._given.about["thin_further"]
        if number:
            state = thinned(state, most, "float32")
        put_thinned(folder, prefix, state, further if number else most, "float32")

    def _part(self, whole: Tensor, rows: Sequence[int], rank: int) -> Tensor:
        """Give a rank's part of rows."""
        mine = rows[share(len(rows), rank, self._place.size)]
        shape = (len(mine), *whole.shape[1:])
        return Repeated(whole.path, shape, whole.dtype, tuple(mine))

    def _read_state(self) -> None:
        for _ in self._activity.state():
            pass


def proof_of(
    activity: Activity, workload: Any, paths: Mapping[str, str], place: Place
) -> Optional[TimedUpdates]:
    """Give a trial's proof; None where the host gives nothing for it, or the doors are missing."""
    if "proof" not in paths or any(door(activity, name) is None for name in DOORS):
        return None
    assert isinstance(workload, Training), "only what trains is given a start"
    return TimedUpdates(activity, workload.network, paths["proof"], paths.get("proved"), place)
