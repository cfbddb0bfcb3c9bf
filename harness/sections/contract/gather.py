"""Gather from runs what sections need beside the results: recordings, and what studies ask.

Timelines are of one trial per cell shown: the one nearest its cell's rate.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.analysis.evidence import (
    Evidence,
    Mark,
    PhaseUse,
    Questions,
    Recordings,
    Timeline,
    Unread,
)
from harness.analysis.explain.cells import attributions
from harness.analysis.floors.kept_floors import MachineFloors, floors_of
from harness.analysis.limits.seen_in_steps import lowered
from harness.analysis.nodes.fleet import is_screen
from harness.analysis.nodes.losses import losses
from harness.analysis.papers.finding_measures import MEASURES
from harness.analysis.results import Results
from harness.analysis.timelines.phases import by_phase, in_turns
from harness.analysis.timelines.timelines import RecordingTitle, timelines
from harness.errors import DamagedFile
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.record_readers.ceilings import Ceiling, read_ceilings
from harness.store.records import RunInfo
from harness.store.samples.recording import Recording, read_recording
from harness.store.typed import damage, read
from harness.verdicts.results import CellResult, TrialResult
from harness.worker.redaction.redact import redact_values

MOST_TRIALS = 4


def gather(dataset: Dataset, results: Results, needs: Collection[str]) -> Evidence:
    """Gather what is needed, without secrets, and nothing else: recordings take long to read."""
    damaged: list[str] = []
    recordings = _recorded(dataset, results) if "recordings" in needs else None
    asked = questions(results, damaged.append) if "questions" in needs else None
    divided = attributions(results) if "attributions" in needs else None
    is_known = "ceilings" in needs or divided is not None
    reached = _ceilings(results, damaged.append) if is_known else None
    lost = losses(dataset) if "losses" in needs and is_screen(results) else None
    shown: Evidence = redact_values(
        Evidence(recordings, asked, tuple(damaged), divided, ceilings=reached, losses=lost)
    )
    return shown if reached is None else replace(shown, floors=_floors(results, shown))


def gather_limits(results: Results) -> Evidence:
    """Gather what says what holds cells back, without secrets; it is read quickly."""
    damaged: list[str] = []
    reached = _ceilings(results, damaged.append)
    shown: Evidence = redact_values(
        Evidence(damaged=tuple(damaged), attributions=attributions(results), ceilings=reached)
    )
    return replace(shown, floors=_floors(results, shown))


def _floors(results: Results, shown: Evidence) -> MachineFloors:
    """Give what layers need at least, alone or in a step of the run."""
    reached = shown.ceilings or ()
    return lowered(floors_of(results, reached), results, shown.attributions or {}, reached)


def _ceilings(results: Results, damaged: Callable[[str], None]) -> tuple[Ceiling, ...]:
    """Read what the machine of one run can do at most; a damaged file is named, and left out."""
    if len(results.runs) > 1:
        return ()
    try:
        return read_ceilings(RunPaths(Path(results.runs[0].directory)))
    except DamagedFile as problem:
        damaged(f"{problem} Ceilings are left out.")
        return ()


def questions(results: Results, damaged: Callable[[str], None]) -> Questions:
    """Read what each run's study asks about its paper; say which study is damaged."""
    asked: dict[str, Sequence[Mapping[str, Any]]] = {}
    for run in results.runs:
        try:
            asked[run.name] = _asked(run)
        except DamagedFile as problem:
            damaged(f"{problem} Its findings are left out.")
            asked[run.name] = ()
    return asked


def _asked(run: RunInfo) -> Sequence[Mapping[str, Any]]:
    paths = RunPaths(Path(run.directory))
    try:
        text = paths.files.read_text(paths.study)
    except FileNotFoundError:
        return ()
    with damage(paths.study):
        try:
            study = tomllib.loads(text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        for number, one in enumerate(read(_Asked, study).finding):
            if one.measure not in MEASURES:
                raise ValueError(f"finding[{number}].measure: {one.measure!r:.80} is not known")
        findings: Sequence[Mapping[str, Any]] = study.get("finding", ())
        return findings


@dataclass(frozen=True)
class _Finding:
    """What a question about a paper must say."""

    question: str
    paper: str
    of: Mapping[str, Any]
    over: Mapping[str, Any] | None = None
    measure: str = "rate"
    claim: str = ""
    stand_in: str = ""


@dataclass(frozen=True)
class _Asked:
    """What is read here of a study."""

    finding: tuple[_Finding, ...] = ()


def _recorded(dataset: Dataset, results: Results) -> Recordings:
    called = results.names
    drawn: list[Timeline] = []
    unread: dict[Unread, None] = {}
    phases: list[PhaseUse] = []
    for cell, trial in _chosen(results):
        name = f"{called[cell.run, cell.key]}, block {trial.block}"
        axis = _Axis(dataset, trial)
        marks, first_ns = phases_of(dataset, cell, trial)
        for node, recording in _recordings(axis.record.paths):
            drawn += _drawn(dataset, cell, trial, name, node, recording)
            phases += by_phase(name, node, recording, marks, axis.on(node, first_ns))
            for source, reason in recording.unread():
                unread[Unread(node, source, reason)] = None
    return Recordings(tuple(drawn), tuple(phases), tuple(unread))


def timelines_of(
    dataset: Dataset, cell: CellResult, trial: TrialResult, name: str
) -> Iterator[Timeline]:
    """Give what the collector read while a trial ran, from when its first phase began."""
    for node, recording in _recordings(_Axis(dataset, trial).record.paths):
        yield from _drawn(dataset, cell, trial, name, node, recording)


def _drawn(
    dataset: Dataset,
    cell: CellResult,
    trial: TrialResult,
    name: str,
    node: str,
    recording: Recording,
) -> Iterator[Timeline]:
    axis = _Axis(dataset, trial)
    marks, first_ns = phases_of(dataset, cell, trial)
    all_marks = marks + steps_of(dataset, cell, trial, first_ns)
    for one in timelines(recording, _place(name, trial, node), all_marks, axis.on(node, first_ns)):
        yield replace(one, clock_bound_s=axis.bound_s(node))


class _Axis:
    """The first rank's time axis, on which the marks of all drawings of a trial lie."""

    def __init__(self, dataset: Dataset, trial: TrialResult) -> None:
        (self.record,) = (one for one in dataset.trials if str(one.directory) == trial.directory)
        self._clocks = self.record.clocks
        self._first = self.record.hosts.get(0, "")

    def on(self, node: str, first_ns: int) -> int:
        """Say what a node's clock showed at a moment of the first rank's."""
        return round(self._clocks.node_ns(node, self._clocks.host_ns(self._first, first_ns)))

    def bound_s(self, node: str) -> float | None:
        """Say how far a node's readings may be from where they lie on this axis."""
        return self._clocks.bound_s((self._first, node))


def _chosen(results: Results) -> Iterator[tuple[CellResult, TrialResult]]:
    """Choose trials to draw: of each task's fastest cell first, then of the others."""
    of: dict[str, list[CellResult]] = {}
    for cell in results.cells:
        of.setdefault(cell.task, []).append(cell)
    most = max(map(len, of.values()), default=0)
    ranked = [cells[place] for place in range(most) for cells in of.values() if place < len(cells)]
    drawn = 0
    for cell in ranked:
        trial = typical_trial(cell)
        if trial is not None and drawn < MOST_TRIALS:
            drawn += 1
            yield cell, trial


def typical_trial(cell: CellResult) -> TrialResult | None:
    """Give the trial nearest the rate; of a cell without any that counts, the last observed."""
    observed = [trial for trial in cell.trials if trial.readings]
    counted = [trial for trial in observed if trial.counted and trial.rate is not None]
    if cell.rate is None or not counted:
        return observed[-1] if observed else None
    rate = cell.rate.value
    return min(counted, key=lambda trial: abs((trial.rate or 0.0) - rate))


def _recordings(trial: TrialPaths) -> Iterator[tuple[str, Recording]]:
    for path in trial.all_samples():
        recording = read_recording(path, trial.files)
        if recording is not None:
            yield str(recording.facts.get("node", "")), recording


def _place(name: str, trial: TrialResult, node: str) -> RecordingTitle:
    return RecordingTitle(
        f"{name} on {node}",
        f"Raw readings: {trial.directory.rpartition('cells/')[2]}",
    )


def phases_of(
    dataset: Dataset, cell: CellResult, trial: TrialResult
) -> tuple[tuple[Mark, ...], int]:
    """Give the first rank's phases as marks, and when the first began."""
    rows = dataset.sql(
        "SELECT phase, start_ns, coalesce(end_ns, start_ns) FROM phases "  # noqa: S608  keys and names of our own files, quoted
        f"WHERE {_of_first_rank(cell, trial)} ORDER BY start_ns"
    ).rows
    zero = int(rows[0][1]) if rows else 0
    marks: list[Mark] = []
    for phase, start, end in rows:
        mark = Mark(phase, (start - zero) / 1e9, (end - zero) / 1e9)
        marks.append(mark if trial.turns is None else in_turns(mark, marks))
    return tuple(marks), zero


def steps_of(
    dataset: Dataset, cell: CellResult, trial: TrialResult, zero_ns: int
) -> tuple[Mark, ...]:
    """Mark the first rank's step windows, each of one step or of several."""
    rows = dataset.sql(
        "SELECT steps, start_ns, end_ns FROM windows "  # noqa: S608  as above
        f"WHERE {_of_first_rank(cell, trial)} ORDER BY start_ns"
    ).rows
    return tuple(
        Mark(
            "step" if steps == 1 else "window of steps",
            (start - zero_ns) / 1e9,
            (end - zero_ns) / 1e9,
            "step",
        )
        for steps, start, end in rows
    )


def _of_first_rank(cell: CellResult, trial: TrialResult) -> str:
    name = str(TrialName(trial.block, trial.attempt))
    return (
        f"run = {_quoted(cell.run)} AND cell_key = {_quoted(cell.key)} "
        f"AND trial = {_quoted(name)} AND rank = 0"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
