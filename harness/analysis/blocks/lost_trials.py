"""Name the blocks in which a cell lost a trial for a reason that may be its own.

What was cancelled, or was lost with its node, says nothing of the cell; what ended in its timeout,
failed, lacked memory or was rejected may depend on it. A block counts even where another attempt
came to a good end: that one was chosen by how the first had ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from harness.stats.losses import Losses
from harness.store.layout import PILOT
from harness.store.outcome import Ended
from harness.units import counted
from harness.verdicts.results import CellResult, Comparison, TrialResult

_OF_THE_CELL = (Ended.TIMED_OUT, Ended.OUT_OF_MEMORY, Ended.FAILED)


def losses(cell: CellResult, reference: CellResult, rejected: Collection[str]) -> Losses:
    """Name the blocks that each of two cells lost a trial in."""
    return Losses(*(frozenset(lost_by_block(one, rejected)) for one in (cell, reference)))


def described(
    cell: CellResult, reference: CellResult, told: Losses, rejected: Collection[str]
) -> str:
    """Say which blocks were lost by the one that lost more, and how."""
    loser, other = (cell, reference) if told.side > 0 else (reference, cell)
    lost, kept = lost_by_block(loser, rejected), lost_by_block(other, rejected)
    tried = {trial.block for trial in loser.trials if trial.block != PILOT}
    how = ", ".join(f"{count} {why}" for why, count in Counter(lost.values()).most_common())
    who = "it" if told.side > 0 else "the reference"
    than = "the reference" if told.side > 0 else "this cell"
    blocks = f"{len(lost)} of {counted(len(tried), 'block')}"
    return f"{who} lost trials in {blocks} ({how}), {than} in {len(kept)}"


def as_bound(told: Comparison) -> Comparison:
    """Say of a difference that is at least as large as its interval says how large that is."""
    if told.interval is None or told.answer not in ("faster", "slower"):
        return told
    nearest = told.interval.low - 1 if told.answer == "faster" else 1 - told.interval.high
    why = f"at least {nearest * 100:.2g} % {told.answer}, since {told.why}"
    return replace(told, why=why)


def lost_by_block(cell: CellResult, rejected: Collection[str]) -> dict[int, str]:
    """Say by block how a cell's first lost trial ended, or which verdict rejected it."""
    found: dict[int, str] = {}
    for trial in cell.trials:
        why = _why(trial, rejected)
        if why and trial.block != PILOT:
            found.setdefault(trial.block, why)
    return found


def _why(trial: TrialResult, rejected: Collection[str]) -> str | None:
    if trial.counted:  # though it stood still, as all of its cell do
        return None
    if trial.outcome in _OF_THE_CELL:
        return trial.outcome
    return trial.verdict if trial.verdict in rejected else None
