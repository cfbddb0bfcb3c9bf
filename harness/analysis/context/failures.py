"""Cells that gave no number that counts: how they ended, and which factors they have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.cell_names import NAMED_APART, factor_value, factor_words, in_order
from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.store.outcome import Ended
from harness.verdicts.results import CellResult, TrialResult

_IN_WORDS = {
    Ended.FAILED: "failed",
    Ended.TIMED_OUT: "timed out",
    Ended.OUT_OF_MEMORY: "ran out of memory",
    Ended.UNSUPPORTED: "cannot run here",
    Ended.NODE_LOST: "lost their node",
}
_REJECTED = "were rejected in every trial"
_MOST_LEVELS = 12


@dataclass(frozen=True)
class Failure:
    """One cell without a number, how it ended, and the trial that shows it."""

    ranking: Ranking
    cell: CellResult
    kind: str
    trial: TrialResult
    why: str


def failures(results: Results) -> tuple[Failure, ...]:
    """List the cells that were tried and gave no number."""
    return tuple(
        _failure(ranking, cell)
        for ranking in results.rankings
        for cell in ranking.without
        if cell.trials
    )


def _failure(ranking: Ranking, cell: CellResult) -> Failure:
    trial = telling_trial(cell)
    has_ended = trial.outcome != Ended.OK
    kind = _IN_WORDS.get(Ended(trial.outcome), trial.outcome) if has_ended else _REJECTED
    return Failure(ranking, cell, kind, trial, why(trial))


def telling_trial(cell: CellResult) -> TrialResult:
    """Take the first trial that did not end well; where all did, they were rejected."""
    return next((one for one in cell.trials if one.outcome != Ended.OK), cell.trials[0])


def why(trial: TrialResult) -> str:
    """Say why a trial gave no number that counts."""
    told = trial.reason or "; ".join(trial.evidence) or (trial.verdict or "")
    return told.rstrip(".")


def by_kind(of: Sequence[Failure]) -> dict[str, list[Failure]]:
    """Group failures by how they ended, the most frequent first."""
    kinds: dict[str, list[Failure]] = {}
    for one in of:
        kinds.setdefault(one.kind, []).append(one)
    return dict(sorted(kinds.items(), key=lambda pair: -len(pair[1])))


def in_common(results: Results, of: Sequence[Failure]) -> str:
    """Say in which factors cells that failed alike are all the same, and whether all such did."""
    shared = {}
    for name in dict.fromkeys(("workload", "framework", *results.varied)):
        values = [factor_value(one.cell, name) for one in of]
        is_one = all(value == values[0] for value in values)
        if is_one and any(factor_value(cell, name) != values[0] for cell in results.cells):
            shared[name] = values[0]
    if len(of) == 1 or not shared:
        return ""
    alike = [
        cell
        for cell in results.cells
        if all(factor_value(cell, name) == value for name, value in shared.items())
    ]
    words = " · ".join(
        str(value) if name in NAMED_APART else factor_words(name, value)
        for name, value in shared.items()
    )
    return f"every cell of {words}" if len(alike) == len(of) else f"some cells of {words}, no other"


def _level(value: object) -> str:
    """Put a factor's value into a word for a table under the factor's name."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def by_level(
    results: Results, of: Sequence[Failure]
) -> Sequence[tuple[str, str, int, Mapping[str, int]]]:
    """Count, for each level of each varied factor, its cells and those that failed in each way."""
    failed = {(one.cell.run, one.cell.key): one.kind for one in of}
    rows: list[tuple[str, str, int, Mapping[str, int]]] = []
    for name in dict.fromkeys(("workload", "framework", *results.varied)):
        values = in_order(factor_value(cell, name) for cell in results.cells)
        levels: dict[str, list[CellResult]] = {_level(value): [] for value in values}
        for cell in results.cells:
            levels[_level(factor_value(cell, name))].append(cell)
        if not 1 < len(levels) <= _MOST_LEVELS:
            continue
        for level, cells in levels.items():
            kinds = [failed[c.run, c.key] for c in cells if (c.run, c.key) in failed]
            counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
            rows.append((name.replace("_", " "), level, len(cells), counts))
    return rows
