"""What is known of one cell over time: steps as they were traced, and a trial that was timed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.context.absolute_paths import without_places
from harness.analysis.evidence import Mark, Timeline
from harness.analysis.results import Results
from harness.sections.contract.gather import phases_of, steps_of, timelines_of, typical_trial
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths
from harness.store.record_readers.traced_steps import TracedSteps, read_traced_steps
from harness.verdicts.results import CellResult, TrialResult
from harness.worker.redaction.redact import redact_values

LATEST_S = 1e9
"""Thirty years after a trial began: only in a damaged file do its steps begin later."""


@dataclass(frozen=True)
class CellTrace:
    """One cell: a few of its steps, layer by layer, and the trial nearest its rate."""

    name: str
    traced: TracedSteps | str
    """Or why there are none."""
    trial: str
    """Which trial the rest is of; "" for none."""
    phases: tuple[Mark, ...] = ()
    """Its phases, and the windows of its steps; in seconds from the first."""
    timelines: tuple[Timeline, ...] = ()
    """What the collector read meanwhile."""

    @property
    def measured_s(self) -> float:
        """Give when its first measured step began."""
        found = (one for one in self.phases if "measure" in (one.name, one.group))
        return next((one.start_s for one in found if 0 <= one.start_s < LATEST_S), 0.0)


def cell_traces(results: Results) -> Iterator[CellTrace]:
    """Give each cell's trace, without secrets and absolute paths."""
    dataset = Dataset([Path(run.directory) for run in results.runs])
    folders = {run.name: RunPaths(Path(run.directory)) for run in results.runs}
    for cell in results.cells:
        name = results.names[cell.run, cell.key]
        traced = read_traced_steps(folders[cell.run], cell.key)
        trial = _trial(cell)
        found = CellTrace(name, traced, "")
        if trial is not None:
            phases, zero_ns = phases_of(dataset, cell, trial)
            marks = phases + steps_of(dataset, cell, trial, zero_ns)
            lines = tuple(timelines_of(dataset, cell, trial, name))
            found = CellTrace(name, traced, f"block {trial.block}", marks, lines)
        shown: CellTrace = without_places(redact_values(found))
        yield shown


def _trial(cell: CellResult) -> TrialResult | None:
    """Choose the trial to show: one that was observed, near the rate; else any that counts."""
    return typical_trial(cell) or next((one for one in cell.trials if one.counted), None)
