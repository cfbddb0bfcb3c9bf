"""Pair two cells block by block: what sets them apart while the machine is the same.

Where both took turns in one group, a block's log ratio is the median over rounds of the log ratio
within a round. Elsewhere it is that of their whole trials, which ran one after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import exp, log

from harness.stats import rounds
from harness.stats.estimate import OrderInterval
from harness.stats.rounds import block_log_ratio
from harness.store.layout import TrialName
from harness.verdicts.results import CellResult, Interval, TrialResult
from harness.verdicts.thresholds import REJECTING


def rates_by_block(cell: CellResult) -> Mapping[int, float]:
    """Give the counted rate of each block."""
    return {
        trial.block: trial.rate for trial in cell.trials if trial.counted and trial.rate is not None
    }


def log_ratios(
    cell: CellResult, other: CellResult, *, rejected: Collection[str] = REJECTING
) -> Mapping[int, float]:
    """Give the log ratio of each block in which both have a figure that counts.

    The other's trial is the one that lived at the same time, be it the last of its block or not: a
    reference is in every group of its block, and again in one that is made again.
    """
    theirs = rates_by_block(other)
    logs: dict[int, float] = {}
    for trial, beside in _pairs(cell, other, rejected):
        if _together(trial, other.key) is None:
            rate = theirs.get(trial.block)
            value = None if rate is None or trial.rate is None else log(trial.rate / rate)
        elif beside is not None:
            value = block_log_ratio(_rounds(trial), _rounds(beside), planned=_planned(trial))
        else:
            value = None
        if value is not None:
            logs[trial.block] = value
    return logs


def rounds_by_block(cell: CellResult, other: CellResult) -> Mapping[int, Sequence[float]]:
    """Give the log ratio of each round of the blocks in which both took turns."""
    return {
        trial.block: rounds.log_ratios(_rounds(trial), _rounds(beside))
        for trial, beside in _pairs(cell, other, REJECTING)
        if beside is not None
    }


def _pairs(
    cell: CellResult, other: CellResult, rejected: Collection[str]
) -> Iterator[tuple[TrialResult, TrialResult | None]]:
    """Give the trials that count, and which of the other's lived at the same time."""
    by_name = {_name(trial): trial for trial in other.trials if _stands(trial, rejected)}
    for trial in cell.trials:
        if trial.counted and trial.rate is not None:
            beside = by_name.get(_together(trial, other.key) or "")
            is_mutual = beside is not None and _together(beside, cell.key) == _name(trial)
            yield trial, beside if is_mutual else None


def rates_beside(cell: CellResult, other: CellResult) -> Mapping[int, float]:
    """Give a cell's rate of each block such that its ratio to the other's is the paired one."""
    logs, theirs = log_ratios(cell, other), rates_by_block(other)
    beside = {block: theirs[block] * exp(one) for block, one in logs.items() if block in theirs}
    return beside or rates_by_block(cell)


def of_ratios(one: OrderInterval) -> Interval:
    """Call an order interval what it is of where ratios of blocks stand in for trials."""
    meaning = one.meaning.replace("trials", "blocks' ratios")
    return Interval(one.low, one.high, one.level, meaning)


def takes_turns_with(cell: CellResult, other: CellResult) -> bool:
    """Tell whether any of a cell's counted trials took turns with the other cell."""
    return any(trial.counted and _together(trial, other.key) for trial in cell.trials)


def _together(trial: TrialResult, key: str) -> str | None:
    return None if trial.turns is None else trial.turns.together.get(key)


def _stands(trial: TrialResult, rejected: Collection[str]) -> bool:
    return trial.counted or (trial.rate is not None and trial.verdict not in rejected)


def _name(trial: TrialResult) -> str:
    return str(TrialName(trial.block, trial.attempt))


def _planned(trial: TrialResult) -> int:
    return 0 if trial.turns is None else trial.turns.planned


def _rounds(trial: TrialResult) -> Mapping[int, float]:
    return {} if trial.turns is None else {one.number: one.rate for one in trial.turns.rounds}
