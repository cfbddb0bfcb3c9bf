"""Say how the cells of a ranking shared the machine: by turns, or each trial alone."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

from harness.analysis import numbers
from harness.analysis.blocks.bias_of_turns import alternations, bias
from harness.analysis.ranking import Ranking
from harness.stats.answers import EQUIVALENCE
from harness.stats.estimate import median
from harness.stats.turn_bias import FEWEST, TurnBias
from harness.units import counted
from harness.verdicts.results import CellResult, TurnsTaken

_NAMED = 4
"""Cells of one kind that a sentence names."""


def how_measured(ranking: Ranking) -> str:
    """Say it in sentences; nothing where no study of these cells lets trials take turns.

    Nor of a cell that has nobody to take turns with.
    """
    if len(ranking.cells) + len(ranking.set_aside) < 2:
        return ""
    return " ".join(_sentences(ranking))


def _sentences(ranking: Ranking) -> Iterator[str]:
    listed = (*ranking.cells, *ranking.set_aside)
    taken = {ranking.name(cell): _taken(cell) for cell in listed}
    shared = [one for some in taken.values() for one in some if not one.alone]
    if shared:
        yield f"{_turns(shared)}."
        yield _by_turns_and_alone(ranking)
    groups = {
        (trial.block, frozenset(trial.turns.together.items()))
        for cell in ranking.cells
        for trial in cell.trials
        if trial.counted and trial.turns is not None and not trial.turns.alone
    }
    if len(groups) > len({block for block, _ in groups}):
        yield "Not all cells of a block lived at the same time; the reference was in each group."
    alone: dict[str, list[str]] = {}
    for name, some in taken.items():
        for why in dict.fromkeys(one.alone for one in some if one.alone):
            alone.setdefault(why, []).append(name)
    for why, names in alone.items():
        yield f"{', '.join(names)} ran alone: {why}."


def in_a_word(cell: CellResult) -> str | None:
    """Say of one cell whether its trials took turns, or why not; None in a study without turns."""
    taken = _taken(cell)
    alone = list(dict.fromkeys(one.alone for one in taken if one.alone))
    shared = [one for one in taken if not one.alone]
    said = [f"in turns with {counted(len(one.together) - 1, 'other')}" for one in shared]
    found = bias(cell)
    if found is not None:
        said.append(f"{_percent(found)} by turns against alone, {found.count} checks")
    return "; ".join((*dict.fromkeys(said), *(f"alone: {why}" for why in alone))) or None


def _taken(cell: CellResult) -> list[TurnsTaken]:
    """Give how its trials shared the machine: those that count, or all where none does."""
    told = [(trial.counted, trial.turns) for trial in cell.trials if trial.turns is not None]
    any_counts = any(counts for counts, _ in told)
    return [turns for counts, turns in told if counts or not any_counts]


def _by_turns_and_alone(ranking: Ranking) -> str:
    """Say how far rates by turns are from rates alone, or that it is not known."""
    cells = [cell for cell in ranking.cells if any(not one.alone for one in _taken(cell))]
    known = {ranking.name(cell): bias(cell) for cell in cells}
    unknown = [name for name, found in known.items() if found is None]
    if unknown:
        counts = [len(alternations(c)) for c in cells if ranking.name(c) in unknown]
        return (
            f"How far turns change the rates of {_listed(unknown)} is not known yet: of "
            f"{FEWEST} checks that takes there are {min(counts)}."
        )
    found = {name: one for name, one in known.items() if one is not None}
    said = [f"{name} {_percent(one)}" for name, one in found.items()][:_NAMED]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    wide = [name for name, one in found.items() if not one.is_within(EQUIVALENCE)]
    doubt = f" Not shown to be within {EQUIVALENCE * 100:.0f} %: {_listed(wide)}." if wide else ""
    return (
        f"By turns against alone with the others stopped: {', '.join(said)}{more}; intervals of "
        f"ratios are wider by that.{doubt}"
    )


def _percent(found: TurnBias) -> str:
    ends = (found.centre, found.low, found.high)
    centre, low, high = (f"{(exp(one) - 1) * 100:+.1f}" for one in ends)
    return f"{centre} % [{low}, {high}]"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _turns(shared: list[TurnsTaken]) -> str:
    lengths = [one.turn_s for one in shared if one.turn_s is not None]
    planned = sorted({one.planned for one in shared})
    rounds = counted(planned[-1], "round")
    if len(planned) > 1:
        rounds = f"{planned[0]} to {rounds}"
    length = f" of {numbers.seconds(float(f'{median(lengths):.2g}'))}" if lengths else ""
    said = f"Cells took turns{length}, {rounds} a block, one at work while the others stood still"
    dropped = sum(one.disturbed for one in shared)
    return f"{said}; {counted(dropped, 'disturbed turn')} dropped" if dropped else said
