"""Read what a trial gave back of its updates."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from harness.exact.layer import Array
from harness.gate.proof import narrow_weights
from harness.gate.proof.expected_updates import thinned
from harness.gate.proof.moments import Update
from harness.gate.proof.start import Start
from harness.gate.proof.untrained import Untrained
from harness.gate.tensors import folders
from harness.worker.gate.subject import stride
from harness.worker.gate.tensors import Folder
from harness.worker.network.workload import MOMENTS, Training

THIN_FURTHER = 1 << 12
"""Items of what the first rank gives back, that each further one gives too."""
_FIRST = 0.5
"""Of what the first step alone moves weights by, what two move them by beside the second."""


def updates_of(workload: Training, start: Start, made: Folder) -> list[Update]:
    """Read the updates of the first rank; refuse a state that is incomplete."""
    before = {name: thinned(np.asarray(one, np.float64)) for name, one in start.state.items()}
    moments = MOMENTS[type(workload.optimiser)]
    updates = []
    for number in range(1, len(start.batches) + 1):
        found = _after(made, number)
        lacking = sorted(set(before) - set(found) - {"step"})
        if lacking:
            kind = lacking[0].rpartition("/")[2]
            what = (
                f"the optimiser keeps no {kind}" if kind in moments else "its state is incomplete"
            )
            raise Untrained(f"{what}: {lacking[0]} is missing")
        for name, value in found.items():
            if name in before and value.size != before[name].size:
                raise Untrained(f"{name} has another size than it was given")
        updates.append(Update(number, before, found))
    return updates


def further_updates(made: Folder, first: Sequence[Update], who: str) -> list[Update]:
    """Read the updates of a further rank, a part of what the first one gives back."""
    updates = []
    for one in first:
        found = _after(made, one.number)
        for name, values in one.after.items():
            if name not in found or found[name].size != thinned_further(values).size:
                raise Untrained(f"{who} does not give {name} back after update {one.number}")
        before = {name: thinned_further(values) for name, values in one.before.items()}
        updates.append(Update(one.number, before, found))
    return updates


def refuse_standstill(workload: Training, one: Update) -> None:
    """Refuse an update that leaves everything as it was, or every weight."""
    still = [name for name in one.after if np.array_equal(one.after[name], one.before[name])]
    for name, values in one.after.items():
        if not np.all(np.isfinite(values)):
            raise Untrained(f"{name} is not a number after update {one.number}")
    if len(still) == len(one.after):
        raise Untrained(f"update {one.number} changes nothing")
    if all(name in still for name in learned(workload, one)):
        raise Untrained(f"no weight moves in update {one.number}")
    for moment in MOMENTS[type(workload.optimiser)]:
        if all(f"{name}/{moment}" in still for name in learned(workload, one)):
            raise Untrained(f"the optimiser keeps no {moment}: update {one.number} leaves it as is")


def learned(workload: Training, one: Update) -> list[str]:
    """Name what is trained."""
    (moment, *_) = MOMENTS[type(workload.optimiser)]
    return [name for name in one.before if f"{name}/{moment}" in one.before]


def two_updates(updates: Sequence[Update], made: Folder) -> Update | None:
    """Read what two steps made of the start, with a sync behind the second alone.

    None where they left fp32.
    """
    first, number = updates[0], updates[-1].number + 2
    found = _whole(made, number, first)
    is_finite = all(np.all(np.isfinite(values)) for values in found.values())
    return Update(number, first.before, found) if is_finite else None


def refuse_one_for_two(workload: Training, one: Update, two: Update, batch: int) -> None:
    """Refuse two steps that moved weights as far as the last one does, by the moments it left.

    What they moved them by beyond that is what ``one`` alone did, from the same start with the same
    batch; however far the second went: from where the first ended a gradient may be any size. A
    sync stands behind every other update: a step that notes that it is due, and is done once when
    somebody looks, makes all of those.
    """
    shares = []
    for name in learned(workload, two):
        last, _ = narrow_weights.movement_of(workload, name, two, batch)
        first = one.before[name] - one.after[name]
        if squares := float(first @ first):
            shares.append(float((two.before[name] - two.after[name] - last) @ first) / squares)
    if shares and median(shares) < _FIRST:
        raise Untrained("of two steps without a sync between them only one moved the weights")


def following_update(last: Update, made: Folder, *, is_known: bool) -> Update | None:
    """Read the update that begins where the last one ended; None where it left fp32.

    How many were made is counted by the optimiser itself there, not loaded. What float64 says of it
    is finite where it ``is known``; elsewhere no start keeps it within what fp32 holds.
    """
    found = _whole(made, last.number + 1, last)
    lost = [name for name, values in found.items() if not np.all(np.isfinite(values))]
    if lost and is_known:
        words = f"after update {last.number + 1}, which follows another"
        raise Untrained(f"{lost[0]} is not a number {words}")
    if lost:
        return None
    before = dict(last.after)
    if "step" in last.before:
        before["step"] = last.before["step"] + 1
    return Update(last.number + 1, before, found)


def _whole(made: Folder, number: int, like: Update) -> dict[str, Array]:
    """Read a further update; refuse one that lacks what another has."""
    found = _after(made, number)
    if lacking := sorted(set(like.after) - set(found)):
        raise Untrained(f"its state is incomplete: {lacking[0]} is missing")
    return found


def thinned_further(values: Array) -> Array:
    """Take the items that a further rank gives back."""
    flat: Array = values[:: stride(values.size, THIN_FURTHER)]
    return flat


def _after(made: Folder, number: int) -> dict[str, Array]:
    after = made.under(f"after/{number}/").items()
    return {k: np.asarray(folders.array(one), np.float64).reshape(-1) for k, one in after}
