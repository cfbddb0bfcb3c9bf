"""Compare one run with another, cell by cell: what changed, and what else differs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.analysis.analyse import estimate_cells
from harness.analysis.between_runs.assumptions import assumptions
from harness.analysis.between_runs.changes import told_changes
from harness.analysis.between_runs.metrics import METRICS, Metric, logs
from harness.analysis.between_runs.repeated_runs import known_scatter, session, sessions
from harness.analysis.differences import flatten
from harness.errors import RunError, UsageError
from harness.stats.between_runs.sessions import Scatter
from harness.stats.between_runs.unpaired import Change
from harness.store.dataset import Dataset
from harness.store.records import RunInfo
from harness.study.recorded_variables import is_telling
from harness.verdicts.results import CellResult, Interval
from harness.worker.redaction.redact import NAMES_A_PLACE, redact_values


@dataclass(frozen=True)
class Pair:
    """One cell in both runs; a ratio above 1 means that the second run is the better one."""

    key: str = field(metadata={NAMES_A_PLACE: True})
    label: str
    workload: str
    before: CellResult
    after: CellResult
    change: Change

    scatter: Scatter | None = None
    """How far sessions of it differ while nothing changes; None where nothing says so."""
    is_together: bool = False
    """Whether both were measured in one session, block by block."""

    @property
    def is_judged(self) -> bool:
        """Whether a change of it can be told at all."""
        return self.is_together or self.scatter is not None

    @property
    def interval(self) -> Interval | None:
        """Where the ratio plausibly lies."""
        one = self.change
        if one.low is None or one.high is None:
            return None
        meaning = "holds what sessions of this machine differ by, and for all cells together"
        if self.is_together:
            meaning = "of both in one session; holds for all cells together"
        return Interval(one.low, one.high, one.level, meaning)


@dataclass(frozen=True)
class Versus:
    """A second run against a first."""

    metric: str
    before: RunInfo
    after: RunInfo
    pairs: tuple[Pair, ...]
    not_compared: tuple[tuple[str, str], ...]
    """Label and reason."""
    differences: tuple[tuple[str, str, str], ...]
    """What, in the first run, in the second: platform, software, environment, protocol."""
    warnings: tuple[str, ...]


def versus(
    before: Dataset,
    after: Dataset,
    metric: str = "rate",
    *,
    repeats: Sequence[Path] = (),
    seed: int = 0,
) -> Versus:
    """Compare all cells that both runs have; refuse runs that have nothing comparable.

    ``repeats`` are runs that repeat theirs: they say how far two sessions differ.
    """
    first, second = before.runs[0], after.runs[0]
    if first.info.is_simulated != second.info.is_simulated:
        raise RunError("What a model said is not compared with what was measured.")
    if first.paths.root == second.paths.root:
        raise UsageError(f"{first.info.directory}: a run does not differ from itself; name two")
    # what differs between two cells is told by name and value apart: secrets go before that
    old = {cell.key: redact_values(cell) for cell in estimate_cells(before)[first.info.name]}
    new = {cell.key: redact_values(cell) for cell in estimate_cells(after)[second.info.name]}
    skipped = list(_not_in_both(old, new))
    shared = []
    for key in (key for key in old if key in new):
        why = _incomparable(old[key], new[key], METRICS[metric])
        if why:
            skipped.append((old[key].label, why))
        else:
            shared.append(key)
    if not shared:
        raise RunError(
            f"nothing to compare: {first.info.name} and {second.info.name} have no comparable "
            "cell.\n" + "\n".join(f"    {label}: {why}" for label, why in skipped[:10])
        )
    here, there = (session(one, METRICS[metric]) for one in (before, after))
    others = sessions(repeats, METRICS[metric])
    known = {key: known_scatter(key, here, there, others) for key in shared}
    changed = told_changes(
        [(old[key], new[key]) for key in shared],
        METRICS[metric],
        known,
        measures=(first.info.measure, second.info.measure),
        seed=seed,
    )
    pairs = [
        Pair(key, old[key].label, old[key].workload, old[key], new[key], changed[key], known[key])
        for key in shared
    ]
    compared: Versus = redact_values(
        Versus(
            metric=metric,
            before=first.info,
            after=second.info,
            pairs=tuple(pairs),
            not_compared=tuple(skipped),
            differences=tuple(_differences(first.info, second.info, pairs)),
            warnings=(
                *assumptions(first.info, second.info, known, others),
                *_warnings(before, after, pairs),
            ),
        )
    )
    return compared


def _not_in_both(
    old: Mapping[str, CellResult], new: Mapping[str, CellResult]
) -> Iterator[tuple[str, str]]:
    for key, cell in old.items():
        if key not in new:
            yield cell.label, "only in the first run"
    for key, cell in new.items():
        if key not in old:
            yield cell.label, "only in the second run"


def _incomparable(old: CellResult, new: CellResult, metric: Metric) -> str:
    """Give the reason why two results of a cell must not be compared; empty if they may be."""
    if old.unit != new.unit:
        return f"counted in {old.unit} and in {new.unit}"
    for cell, which in ((old, "first"), (new, "second")):
        if cell.refusal:
            return f"in the {which} run {cell.refusal}"
        if not logs(cell, metric):
            reasons = [trial.reason for trial in cell.trials if trial.reason]
            return f"no figure in the {which} run" + (f": {reasons[0]}" if reasons else "")
    return ""


# values that differ between any two runs and explain nothing
_PASSING = re.compile(
    r"(^|[._])(wall_ns|started\w*|command|pid|since|load|uptime\w*|available\w*|free\w*|used\w*"
    r"|directory|temperature\w*|mhz|throttled\w*|steal_share|cpu_pressure|processes)($|[._])"
)
_ENVIRONMENT = "host.environment."
_OF_THE_JOB = ("SLURM_", "BAKEOFF_")


def _differences(
    before: RunInfo, after: RunInfo, pairs: Sequence[Pair]
) -> Iterator[tuple[str, str, str]]:
    old, new = _described(before), _described(after)
    for key in dict.fromkeys((*old, *new)):
        name = key.removeprefix(_ENVIRONMENT)
        if _PASSING.search(key) or (
            name != key and (name.startswith(_OF_THE_JOB) or not is_telling(name))
        ):
            continue
        if old.get(key) != new.get(key):
            yield key, old.get(key, "–"), new.get(key, "–")
    versions: dict[tuple[str, str, str], None] = {}
    for pair in pairs:
        was, now = pair.before.versions, pair.after.versions
        for name in dict.fromkeys((*was, *now)):
            if was.get(name) != now.get(name):
                key = f"{pair.before.framework}: {name}"
                versions[key, was.get(name, "–"), now.get(name, "–")] = None
    yield from versions


def _described(run: RunInfo) -> dict[str, str]:
    facts: dict[str, Any] = {
        "platform": run.platform,
        "host": run.provenance,
        "measure": run.measure,
        "environment": run.environments,
    }
    return flatten(facts)


def _warnings(before: Dataset, after: Dataset, pairs: Sequence[Pair]) -> Iterator[str]:
    if before.origins != ("measured",):
        yield f"These trials are {' and '.join(before.origins)}; they measure no machine."
    if before.runs[0].info.platform.get("name") != after.runs[0].info.platform.get("name"):
        yield "The runs are from different platforms: this compares machines, not versions."
    if before.runs[0].info.measure != after.runs[0].info.measure:
        yield "The runs were measured under different protocols."
    doubtful = {
        trial.verdict
        for pair in pairs
        for cell in (pair.before, pair.after)
        for trial in cell.trials
        if trial.counted and trial.verdict not in (None, "valid")
    }
    if doubtful:
        yield f"Some counted trials are {' or '.join(sorted(str(one) for one in doubtful))}."
