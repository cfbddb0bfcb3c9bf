"""Tell each cell's change between two runs: from sessions' scatter, bounded by what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from harness.analysis.between_runs.metrics import Metric, logs
from harness.analysis.blocks.lost_trials import lost_by_block
from harness.stats.answers import EQUIVALENCE
from harness.stats.between_runs import lost_trials
from harness.stats.between_runs.lost_trials import SessionLosses
from harness.stats.between_runs.sessions import Scatter, between
from harness.stats.between_runs.unpaired import Change, changes
from harness.store.layout import PILOT
from harness.units import counted
from harness.verdicts.results import CellResult
from harness.verdicts.thresholds import rejecting


def told_changes(
    cells: Sequence[tuple[CellResult, CellResult]],
    metric: Metric,
    known: Mapping[str, Scatter | None],
    *,
    measures: tuple[Mapping[str, Any], Mapping[str, Any]],
    seed: int,
) -> dict[str, Change]:
    """Answer for every cell, given before and after; ``measures`` are the runs' protocols."""
    old, new = ({one.key: logs(one, metric) for one in side} for side in zip(*cells, strict=True))
    before, after = ({key: list(row.values()) for key, row in one.items()} for one in (old, new))
    alone = changes(_rows(old), _rows(new), seed=seed)
    told = between(alone, before, after, known)
    for first, second in cells:
        key = first.key
        losses, lost = _losses(first, second, measures)
        told[key] = lost_trials.bound(
            told[key],
            before[key],
            after[key],
            losses,
            equivalence=EQUIVALENCE,
            lost=lost,
            again=partial(_again, key, alone, known),
        )
    return told


def _again(
    key: str,
    alone: Mapping[str, Change],
    known: Mapping[str, Scatter | None],
    before: Sequence[float],
    after: Sequence[float],
) -> Change:
    """Answer for one cell with other trials; all others share the error with it as before."""
    one = {key: alone[key]}
    return between(one, {key: before}, {key: after}, known, cells=len(alone))[key]


def _rows(by_cell: Mapping[str, Mapping[int, float]]) -> dict[str, list[float | None]]:
    """Give each cell's logarithms with one column per block of the run, None where missing."""
    blocks = sorted({block for row in by_cell.values() for block in row})
    return {key: [row.get(block) for block in blocks] for key, row in by_cell.items()}


def _losses(
    first: CellResult, second: CellResult, measures: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> tuple[SessionLosses, str]:
    counts, words = [], []
    for cell, measure, which in zip((first, second), measures, ("first", "second"), strict=True):
        lost = lost_by_block(cell, rejecting(measure.get("tolerate") or ()))
        blocks = len({trial.block for trial in cell.trials if trial.block != PILOT})
        counts += [len(lost), blocks]
        words.append(f"in {len(lost)} of {counted(blocks, 'block')} of the {which} run")
    return SessionLosses(*counts), f"it lost trials {' and '.join(words)}"
