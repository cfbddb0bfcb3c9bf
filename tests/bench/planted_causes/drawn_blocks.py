"""Draw a pair of cells' blocks with replacement: runs that might have been."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.analysis.blocks.paired_blocks import log_ratios
from harness.store.layout import TrialName
from harness.verdicts.results import CellResult, TrialResult

Pair = tuple[CellResult, CellResult]


def drawn_pairs(pair: Pair, times: int, *, seed: int) -> Iterator[Pair]:
    """Give the same two cells so many times, each of blocks drawn from those that both have."""
    chance = random.Random(seed)
    there = sorted(log_ratios(*pair))
    for _ in range(times):
        blocks = chance.choices(there, k=len(there))
        one, other = (replace(cell, trials=_of_blocks(cell, blocks)) for cell in pair)
        yield one, other


def _of_blocks(cell: CellResult, blocks: Sequence[int]) -> tuple[TrialResult, ...]:
    counted = {trial.block: trial for trial in cell.trials if trial.counted}
    return tuple(_as_block(counted[block], number) for number, block in enumerate(blocks))


def _as_block(trial: TrialResult, number: int) -> TrialResult:
    """Give a trial another block's number, and those that lived beside it the same."""
    turns = trial.turns
    if turns is not None:
        turns = replace(turns, together=dict.fromkeys(turns.together, str(TrialName(number))))
    return replace(trial, block=number, attempt=1, turns=turns)
