"""Add what taking turns may do to a ratio to its interval, as far as checks have measured it."""

from __future__ import annotations

from dataclasses import replace
from math import exp, inf, log

from harness.analysis.blocks.paired_blocks import takes_turns_with
from harness.stats.answers import ALPHA, answer
from harness.stats.turn_bias import TurnBias, turn_bias, widened
from harness.verdicts.results import CellResult, Comparison

_HIDDEN = "what taking turns does to these rates may be as large as the difference"


def alternations(cell: CellResult) -> tuple[float, ...]:
    """Give what checks of a cell found: those of earlier runs here, and of its own trials."""
    taken = [trial.turns for trial in cell.trials if trial.counted and trial.turns is not None]
    known = next((one.known for one in taken if one.known), ())
    return (*known, *(log_ratio for one in taken for log_ratio in one.alternations))


def bias(cell: CellResult) -> TurnBias | None:
    """Estimate by how much a cell's rate by turns is not its rate alone."""
    return turn_bias(alternations(cell))


def with_bias(
    told: Comparison, base: CellResult, cell: CellResult, equivalence: float
) -> Comparison:
    """Widen a comparison's interval; an answer that does not hold any more is withdrawn."""
    if told.interval is None or not told.ratio or not takes_turns_with(cell, base):
        return told
    ours, theirs = bias(cell), bias(base)
    if ours is None or theirs is None:
        return told
    before = told.interval
    ends = (log(before.low) if before.low > 0 else -inf, log(before.high))
    low, high = widened(log(told.ratio), *ends, cell=ours, reference=theirs)
    meaning = f"{before.meaning}, widened by what turns may do"
    interval = replace(before, low=exp(low), high=exp(high), meaning=meaning)
    wider = replace(told, interval=interval)
    if told.answer == "cannot tell":
        return wider
    word, why = answer(low, high, 0.0, ALPHA, equivalence)
    if word == told.answer:
        return wider
    return replace(wider, answer=word, why=_HIDDEN if word == "cannot tell" else why)
