"""Prove that ranks which train together equal one rank with the batch of all.

Two ranks with the cell's own strategy, or one rank with two devices, and one rank without take two
updates in float64, from the same weights, each on its share of one batch; what the updates changed
is compared, and the ranks with each other (``harness/worker/gate/rank_equality.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.gate import tolerances as arithmetic
from harness.gate.jobs import Go, examination_job
from harness.gate.result import GatePart, Result, record
from harness.gate.semantics import TensorComparison
from harness.gate.tensors import draws, folders, requests
from harness.plan.cell import Cell
from harness.plan.gate_duration import has_several_devices
from harness.store.outcome import Ended
from harness.store.records import DIFFERS, EXAMINATION_FAILED, NOT_CHECKED
from harness.worker.gate.rank_equality import path_of
from harness.worker.gate.subject import stride
from harness.worker.gate.tensors import Folder
from harness.worker.job import Job
from harness.worker.network.shapes import sites, statistic_shapes
from harness.worker.network.workload import Training
from harness.worker.scale import Scale

RANKS = 2
UPDATES = 2
SAMPLES = 4
TOLERANCE = 1e-7
"""Of what the updates changed, which has lost some digits of the weights'."""


def words(cell: Cell) -> str:
    """Name what is compared with one rank: so many ranks or devices."""
    return f"{RANKS} {'devices' if has_several_devices(cell) else 'ranks'}"


def examine(
    cell: Cell, small: Training, factors: Mapping[str, Any], place: Path, go: Go
) -> GatePart:
    """Examine a cell's strategy on this machine, in an empty folder."""
    asked, apart, alone = place / "together", place / "many", place / "one"
    _write(small, asked, norms=None)
    judged = go(_job(cell, factors, asked, apart, RANKS))
    if judged.ended is not Ended.OK:
        return GatePart(None, judged.reason, judged.ended is Ended.UNSUPPORTED)
    many = [folders.open_folder(Path(path_of(str(apart), rank))) for rank in range(RANKS)]
    norms = bool(many[0].about["norms"])
    given = place / "alone"
    _write(small, given, norms=norms)
    judged = go(_job(cell, factors, given, alone, 1))
    if judged.ended is not Ended.OK:
        return GatePart(None, f"one rank alone: {judged.reason}", judged.ended is Ended.UNSUPPORTED)
    finding = compared(folders.open_folder(given), folders.open_folder(alone), many)
    has_norms = any(statistic_shapes(site) for site in sites(small.network))
    return GatePart(finding, facts={"norms": norms if has_norms else None})


def joined(result: Result, part: GatePart, at: str, held: str = f"{RANKS} ranks") -> Result:
    """Join the result of one rank with that of several ranks, or of its devices."""
    whole = replace(result, ranks=record(part))
    if result.state == DIFFERS:
        return whole
    if part.finding is None:
        state = EXAMINATION_FAILED if part.has_failed else NOT_CHECKED
        return replace(whole, state=state, detail=f"{held}: {part.why}", log=part.log)
    if part.finding.differs is not None:
        return replace(whole, state=DIFFERS, detail=f"{part.finding.differs}; in float64{at}")
    return replace(whole, detail=f"{result.detail}; {held} equal one, {_words(part)}")


def _words(part: GatePart) -> str:
    assert part.finding is not None
    norms = (part.facts or {}).get("norms")
    how = {None: "", True: ", sync-BN on", False: ", batch norms left out (sync-BN off)"}
    return f"{part.finding.error or 0:.0e}{how[norms]}"


def compared(given: Folder, one: Folder, many: Sequence[Folder]) -> TensorComparison:
    """Compare the updates of several ranks with those of one, and with each other."""
    before = {name: folders.array(tensor) for name, tensor in given.under("initial/").items()}
    changes = {
        name: folders.array(tensor) - _thinned(before[_parameter(name)], tensor.shape, given)
        for name, tensor in one.tensors.items()
    }
    largest = max(float(np.max(np.abs(change))) for change in changes.values())
    worst = 0.0
    for name, change in changes.items():
        start = folders.array(one.tensors[name]) - change
        for rank, made in enumerate(many):
            if name not in made.tensors:
                return TensorComparison(worst, f"{_where(name)}: rank {rank} gave nothing")
            found = folders.array(made.tensors[name]) - start
            floor = arithmetic.FLOOR * largest
            off = arithmetic.error(found, change, floor=floor, scale=floor)
            if off > TOLERANCE:
                return TensorComparison(
                    worst,
                    f"{_where(name)}: what rank {rank} of {len(many)} changed is {off:.1e} off "
                    f"what one rank with the whole batch changed (allowed: {TOLERANCE:.0e})",
                )
            worst = max(worst, off)
    return TensorComparison(worst)


def _write(small: Training, folder: Path, *, norms: bool | None) -> None:
    inputs, target = draws.batch(small, SAMPLES)
    tensors = {"input": inputs, "target": target}
    tensors |= {f"initial/{name}": values for name, values in draws.initial(small.network)}
    about = {
        "precision": "float64",
        "input": list(small.network.input),
        "shallow": True,
        "updates": UPDATES,
        "thin": requests.THIN,
        "norms": norms,
    }
    folders.write(folder, tensors, about)


def _job(cell: Cell, factors: Mapping[str, Any], given: Path, made: Path, ranks: int) -> Job:
    job = examination_job(cell, "examine", factors, {"given": given, "made": made})
    if ranks == 1:
        return job
    scale = Scale(ranks_per_node=ranks)
    if has_several_devices(cell):
        scale = Scale(devices_per_rank=ranks)
    factors = {**job.factors, "strategy": cell.strategy}
    return replace(job, strategy=cell.strategy, scale=scale, factors=factors)


def _thinned(before: Any, shape: Sequence[int], given: Folder) -> Any:
    if tuple(before.shape) == tuple(shape):
        return before
    flat = before.reshape(-1)
    return flat[:: stride(flat.size, given.about["thin"])]


def _parameter(name: str) -> str:
    return name.split("/", 2)[2]


def _where(name: str) -> str:
    _, update, parameter = name.split("/", 2)
    return f"{parameter} after update {update}"
