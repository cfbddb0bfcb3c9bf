"""Read what a trial gave back of its updates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.exact.layer import Array
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


def thinned_further(values: Array) -> Array:
    """Take the items that a further rank gives back."""
    flat: Array = values[:: stride(values.size, THIN_FURTHER)]
    return flat


def _after(made: Folder, number: int) -> dict[str, Array]:
    after = made.under(f"after/{number}/").items()
    return {k: np.asarray(folders.array(one), np.float64).reshape(-1) for k, one in after}
