"""Find runs that repeat what two runs measured, and learn from them what sessions differ by.

A run repeats another's cell where it measured the same cell under the same protocol on the same
machine. Best are runs of the same code as either of the two: they scatter by what days differ. Runs
of other code, as those of earlier nights, scatter by that and by what changed among them, which
only makes the interval wider; they are taken where they are more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from harness.analysis.analyse import estimate_cells
from harness.analysis.between_runs.metrics import Metric, logs
from harness.errors import BakeoffError
from harness.stats.between_runs.sessions import Scatter, scatter
from harness.store import gate_results
from harness.store.dataset import Dataset
from harness.store.record_readers.run_reader import read_run
from harness.store.records import RunInfo, RunRecord

MOST = 20
"""Of more repeated runs the latest are read."""
_OF_A_TRIAL = ("warmup", "until", "turns", "turn_s")
"""What of a protocol decides what a trial is; how many there are does not."""


@dataclass(frozen=True)
class Session:
    """What one run said of its cells."""

    run: RunInfo
    means: Mapping[str, float]
    """Cell -> mean logarithm of its trials."""
    code: Mapping[str, frozenset[str]]
    """Cell -> fingerprints that its trials ran with."""

    @property
    def machine(self) -> str:
        """Name the machine that it ran on."""
        return machine(self.run)


def machine(run: RunInfo) -> str:
    """Name a run's machine by what does not change from day to day."""
    facts = run.provenance.get("machine")
    known = facts if isinstance(facts, Mapping) else run.provenance
    return f"{run.platform.get('name')} {known.get('hostname')} {known.get('cpu_model')}"


def repeated(places: Iterable[Path], *of: RunRecord) -> list[Path]:
    """Keep the runs that repeat a cell of these on their machine, the latest of them."""
    keys = {cell.key for run in of for cell in run.cells}
    own = {one.paths.root.resolve() for one in of}
    found: list[RunRecord] = []
    for place in places:
        try:
            run = read_run(place)
        except BakeoffError:
            continue
        is_other = run.paths.root.resolve() not in own
        has_cell = bool(keys & {cell.key for cell in run.cells})
        if is_other and has_cell and any(_is_like(run.info, one.info) for one in of):
            found.append(run)
    found.sort(key=lambda run: -run.info.started_wall_ns)
    return [run.paths.root for run in found[:MOST]]


def sessions(places: Iterable[Path], metric: Metric) -> list[Session]:
    """Read what each run said of its cells; one that cannot be read repeats nothing."""
    found = []
    for place in places:
        with suppress(BakeoffError):
            found.append(session(Dataset([place]), metric))
    return found


def session(dataset: Dataset, metric: Metric) -> Session:
    """Read what a run said of its cells."""
    run = dataset.runs[0]
    means = {
        cell.key: fmean(values.values())
        for cell in estimate_cells(dataset)[run.info.name]
        if not cell.refusal and (values := logs(cell, metric))
    }
    ran = gate_results.fingerprints_by_cell(dataset.trials)
    code = {key: frozenset(some) for (_, key), some in ran.items()}
    return Session(run.info, means, code)


def known_scatter(
    key: str, before: Session, after: Session, repeats: Sequence[Session]
) -> Scatter | None:
    """Say how far sessions of a cell differ; None where nothing says so."""
    others = [one for one in repeats if key in one.means]
    same = [one for one in others if _of(key, one) in (_of(key, before), _of(key, after))]
    own = []
    if _of(key, before) != _of(key, after):  # else their difference is what is asked about
        own = [before, after]
    told = [
        scatter(_grouped([(_of(key, one), one.means[key]) for one in (*same, *own)])),
        scatter(_grouped([(one.machine, one.means[key]) for one in others])),
    ]
    return max((one for one in told if one), key=lambda one: one.freedom, default=None)


def _of(key: str, one: Session) -> tuple[str, frozenset[str]]:
    return one.machine, one.code.get(key, frozenset())


def _grouped(values: Collection[tuple[object, float]]) -> list[list[float]]:
    groups: dict[object, list[float]] = {}
    for whose, value in values:
        groups.setdefault(whose, []).append(value)
    return list(groups.values())


def _is_like(run: RunInfo, other: RunInfo) -> bool:
    return (
        machine(run) == machine(other)
        and run.is_simulated == other.is_simulated
        and all(run.measure.get(name) == other.measure.get(name) for name in _OF_A_TRIAL)
    )
