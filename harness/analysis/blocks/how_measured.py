"""Say how the cells of a ranking shared the machine: by turns, or each trial alone."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis import numbers
from harness.analysis.ranking import Ranking
from harness.stats.estimate import median
from harness.units import counted
from harness.verdicts.results import CellResult, TurnsTaken


def how_measured(ranking: Ranking) -> str:
    """Say it in sentences; nothing where no study of these cells lets trials take turns."""
    return " ".join(_sentences(ranking))


def _sentences(ranking: Ranking) -> Iterator[str]:
    taken = {ranking.name(cell): _taken(cell) for cell in ranking.cells}
    shared = [one for some in taken.values() for one in some if not one.alone]
    if shared:
        yield f"{_turns(shared)}."
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


def _taken(cell: CellResult) -> list[TurnsTaken]:
    return [trial.turns for trial in cell.trials if trial.counted and trial.turns is not None]


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
