"""Warn of what the verdicts and marks of trials say, and what would cure it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.analysis.context.trial_tally import tally
from harness.store.dataset import Dataset
from harness.store.layout import PILOT
from harness.store.outcome import Ended
from harness.verdicts.results import CellResult
from harness.verdicts.thresholds import TOLERABLE

_CROWDED = (
    " Where a study names no `threads`, each core has one, and those of some frameworks wait for "
    "the one that a neighbour holds up: fewer threads than cores leave it room."
)


def verdict_warnings(cells: Sequence[CellResult]) -> Iterator[str]:
    """Count the trials of each verdict, the commonest first."""
    told = tally(cells)
    judged = [trial for trial in told.made if trial.verdict is not None]
    on_all_cores = {
        cell.key
        for cell in cells
        if cell.factors.get("device") == "cpu" and cell.factors.get("threads") is None
    }
    for verdict, count in Counter(str(trial.verdict) for trial in judged).most_common():
        if verdict == "valid":
            continue
        these = [trial for trial in judged if trial.verdict == verdict]
        example = "for example: " if count > 1 else ""
        text = f"{told.out_of(count)} {verdict} ({example}{these[0].evidence[0]})."
        if verdict in TOLERABLE and not all(trial.counted for trial in these):
            text += f' On a machine never left alone, measure.tolerate = ["{verdict}"] counts them.'
        if verdict == "contended" and on_all_cores & {trial.cell_key for trial in these}:
            text += _CROWDED
        yield text


def mark_warnings(cells: Sequence[CellResult], dataset: Dataset) -> Iterator[str]:
    """Count the trials with each mark, of those that came to an end of their own."""
    ended = [
        one.outcome
        for one in dataset.trials
        if one.outcome.ended is not Ended.CANCELLED and one.name.block != PILOT
    ]
    marks = Counter(mark for outcome in ended for mark in set(outcome.marks))
    for mark, count in marks.most_common():
        yield f"{tally(cells).out_of(count)}: {mark}."
