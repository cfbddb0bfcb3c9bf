"""Judge trials by turns by what their comparison rests on: the scatter of a block's rounds.

A turn's rate is a mean over many windows, and a block's ratio a median over rounds. How far single
windows spread says nothing beyond what rounds show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from harness.analysis.blocks.paired_blocks import rounds_by_block
from harness.stats.rounds import standard_error
from harness.verdicts.results import CellResult, TrialResult
from harness.verdicts.thresholds import THRESHOLDS

_NOISY = "noisy"


def known_to(cell: CellResult, base: CellResult) -> Mapping[int, float]:
    """Give the standard error of each block's log ratio, where its rounds tell."""
    found = {at: standard_error(logs) for at, logs in rounds_by_block(cell, base).items()}
    return {at: error for at, error in found.items() if error is not None}


def marked(cell: CellResult, base: CellResult) -> CellResult:
    """Mark the trials whose ratio to the reference's their rounds leave in doubt."""
    return replace(cell, trials=tuple(_marked(cell, known_to(cell, base))))


def _marked(cell: CellResult, errors: Mapping[int, float]) -> Iterator[TrialResult]:
    limit = THRESHOLDS["rounds"].value
    for trial in cell.trials:
        error = errors.get(trial.block, 0.0) if trial.counted else 0.0
        if error <= limit:
            yield trial
            continue
        text = f"rounds leave the ratio to the reference in doubt by {error * 100:.0f} %"
        if trial.verdict == "valid":
            yield replace(trial, verdict=_NOISY, evidence=(text, *trial.evidence))
        else:
            yield replace(trial, evidence=(*trial.evidence, text))
