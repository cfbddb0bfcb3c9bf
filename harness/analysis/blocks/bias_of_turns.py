"""Add what taking turns may do to a ratio to its interval, as far as it is in what was counted.

A turn settles before it counts, so that what another trial's turn left is in no rate. Where a rate
is seen to change even in what counts, a part of that is in it. In older runs, whose turns
hardly settled, all is that their checks found.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, inf, log

from harness.analysis.blocks.paired_blocks import takes_turns_with
from harness.stats.answers import ALPHA, answer
from harness.stats.turn_bias import TurnBias, fading, turn_bias, widened
from harness.verdicts.results import CellResult, Comparison, TurnsTaken

_HIDDEN = "what taking turns does to these rates may be as large as the difference"
_NONE = TurnBias(0.0, 0.0, 0.0, 0)


def alternations(cell: CellResult) -> tuple[float, ...]:
    """Give what turns of a cell told: those of earlier runs here, and of its own trials."""
    taken = _taken(cell)
    known = next((one.known for one in taken if one.known), ())
    return (*known, *(log_ratio for one in taken for log_ratio in one.alternations))


def bias(cell: CellResult) -> TurnBias | None:
    """Estimate by how much a cell's rate right after another's turn is not its rate alone."""
    return turn_bias(alternations(cell))


def has_settled(cell: CellResult) -> bool:
    """Tell whether every turn that counts settled before."""
    return all(one.settled for one in _taken(cell))


def left_in_rate(cell: CellResult) -> TurnBias | None:
    """Give what turns do to what counts of them, where it is seen; None where it is not."""
    return fading([change for one in _taken(cell) for change in one.changes])


def with_bias(
    told: Comparison, base: CellResult, cell: CellResult, equivalence: float
) -> Comparison:
    """Widen a comparison's interval; an answer that does not hold any more is withdrawn."""
    if told.interval is None or not told.ratio or not takes_turns_with(cell, base):
        return told
    ours, theirs = _in_rate(cell), _in_rate(base)
    if ours is None or theirs is None or (ours, theirs) == (_NONE, _NONE):
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


def _in_rate(cell: CellResult) -> TurnBias | None:
    return (left_in_rate(cell) or _NONE) if has_settled(cell) else bias(cell)


def _taken(cell: CellResult) -> list[TurnsTaken]:
    taken = [trial.turns for trial in cell.trials if trial.counted and trial.turns is not None]
    return [one for one in taken if not one.alone]
