"""Say how the cells of a ranking shared the machine: by turns, or each trial alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import exp

from harness.analysis import numbers
from harness.analysis.blocks.bias_of_turns import alternations, bias, has_settled, left_in_rate
from harness.analysis.blocks.noisy_rounds import known_to
from harness.analysis.ranking import Ranking
from harness.stats.answers import EQUIVALENCE
from harness.stats.estimate import median
from harness.stats.turn_bias import FEWEST, TurnBias
from harness.units import counted, listed
from harness.verdicts.results import CellResult, TurnsTaken

_NAMED = 4
"""Cells of one kind that a sentence names."""


def how_measured(ranking: Ranking) -> str:
    """Say it in one paragraph."""
    return " ".join(sentences(ranking))


def sentences(ranking: Ranking) -> tuple[str, ...]:
    """Say it in sentences; nothing where no study of these cells lets trials take turns.

    Nor of a cell that has nobody to take turns with.
    """
    if len(ranking.cells) + len(ranking.set_aside) < 2:
        return ()
    return tuple(_sentences(ranking))


def _sentences(ranking: Ranking) -> Iterator[str]:
    cells = (*ranking.cells, *ranking.set_aside)
    taken = {ranking.name(cell): _taken(cell) for cell in cells}
    shared = [one for some in taken.values() for one in some if not one.alone]
    if shared:
        yield f"{_turns(shared)}."
        yield from _rounds(ranking)
        yield _by_turns_and_alone(ranking)
        yield from _left(ranking)
    groups = {
        (trial.block, frozenset(trial.turns.together.items()))
        for cell in ranking.cells
        for trial in cell.trials
        if trial.counted and trial.turns is not None and not trial.turns.alone
    }
    if len(groups) > len({block for block, _ in groups}):
        yield f"Not all cells of a block lived at the same time; {_with_whom(ranking, groups)}."
    alone: dict[str, list[str]] = {}
    for name, some in taken.items():
        for why in dict.fromkeys(one.alone for one in some if one.alone):
            alone.setdefault(why, []).append(name)
    for why, names in alone.items():
        who = ", ".join(names)
        if len(names) > _NAMED:
            are_all = len(names) == len(taken)
            who = "Every cell" if are_all else f"{len(names)} of {len(taken)} cells"
        yield f"{who} ran alone: {why}."


def _with_whom(
    ranking: Ranking, groups: Collection[tuple[int, Collection[tuple[str, str]]]]
) -> str:
    """Say whether the reference was in each group: pairs of two sides have one each."""
    compared = [cell.comparison for cell in ranking.cells if cell.comparison is not None]
    references = {one.reference_key for one in compared}
    if all(references & {key for key, _ in together} for _, together in groups):
        return "the reference was in each group"
    return "cells of groups without the reference are compared with it by whole trials"


def in_a_word(cell: CellResult) -> str | None:
    """Say of one cell whether its trials took turns, or why not; None in a study without turns."""
    taken = _taken(cell)
    alone = list(dict.fromkeys(one.alone for one in taken if one.alone))
    shared = [one for one in taken if not one.alone]
    said = [f"in turns with {counted(len(one.together) - 1, 'other')}" for one in shared]
    found = bias(cell)
    if found is not None:
        said.append(f"{_percent(found)} by turns against alone, in {found.count} turns")
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
            f"How far turns change the rates of {listed(unknown, _NAMED)} is not known yet: "
            f"that takes {FEWEST} turns, and there are {min(counts)} so far."
        )
    found = {name: one for name, one in known.items() if one is not None}
    said = listed([f"{name} {_percent(one)}" for name, one in found.items()], _NAMED)
    wide = [name for name, one in found.items() if not one.is_within(EQUIVALENCE)]
    doubt = ""
    if wide:
        within = f"{EQUIVALENCE * 100:.0f} %"
        doubt = f" Not shown to be within {within}: {listed(wide, _NAMED)}."
    part = "intervals of ratios are wider by that"
    if all(map(has_settled, cells)):
        part = "that is in the time which each turn settles, and in no rate"
    return f"By turns against alone with the others stopped: {said}; {part}.{doubt}"


def _left(ranking: Ranking) -> Iterator[str]:
    """Say where a rate still changes in what counts of a turn."""
    found = {ranking.name(cell): left_in_rate(cell) for cell in ranking.cells if has_settled(cell)}
    said = [f"{name} by {_percent(one)}" for name, one in found.items() if one is not None]
    if said:
        yield (
            f"Rates still change within what counts of a turn, and may differ from those alone: "
            f"{listed(said, _NAMED)}; intervals of ratios are wider by that."
        )


def _rounds(ranking: Ranking) -> Iterator[str]:
    """Say what a block's ratio rests on: trials by turns are not judged by single windows."""
    by_key = {cell.key: cell for cell in ranking.cells}
    errors = [
        error
        for cell in ranking.cells
        if cell.comparison is not None and cell.comparison.reference_key in by_key
        for error in known_to(cell, by_key[cell.comparison.reference_key]).values()
    ]
    if errors:
        usual, worst = (f"{one * 100:.1f} %" for one in (median(errors), max(errors)))
        yield (
            f"By the scatter of its rounds a block's ratio is known to ± {usual}, at worst ± "
            f"{worst}; how far single windows spread is in that, and marks no trial."
        )


def _percent(found: TurnBias) -> str:
    ends = (found.centre, found.low, found.high)
    centre, low, high = (f"{(exp(one) - 1) * 100:+.1f}".replace("-", "−") for one in ends)
    return f"{centre} % [{low}, {high}]"


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
