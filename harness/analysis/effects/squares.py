"""The fastest cell for each pair of values of two factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from harness.analysis.effects.contrasts import Design, design_of, level_words
from harness.analysis.effects.effects import Effects
from harness.analysis.ranking import Ranking
from harness.verdicts.results import CellResult

_MOST_ROWS, _MOST_COLUMNS = 24, 16
"""A map of more lines or columns is no picture any more; the ranking has its cells."""


@dataclass(frozen=True)
class Squares:
    """Two factors, and the fastest of the cells that have two of their values."""

    down: str
    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    fastest: Mapping[tuple[int, int], CellResult]


def squares_of(ranking: Ranking, effects: Effects) -> tuple[Squares, ...]:
    """Lay out each two factors; those first that matter most."""
    design = design_of(ranking)
    order = [some[0].factor for some in effects.by_factor]
    order += [name for name in design.factors if name not in order]
    made = (_squares(design, *pair) for pair in combinations(order, 2))
    return tuple(
        one for one in made if len(one.rows) <= _MOST_ROWS and len(one.columns) <= _MOST_COLUMNS
    )


def _squares(design: Design, first: str, second: str) -> Squares:
    down, across = first, second
    if len(design.values[second]) > len(design.values[first]):
        down, across = second, first
    places = design.factors.index(down), design.factors.index(across)
    rows, columns = list(design.values[down]), list(design.values[across])
    fastest: dict[tuple[int, int], CellResult] = {}
    for levels, cell in design.cells.items():
        at = rows.index(levels[places[0]]), columns.index(levels[places[1]])
        best = fastest.get(at)
        if cell.rate and (best is None or best.rate is None or cell.rate.value > best.rate.value):
            fastest[at] = cell
    return Squares(down, across, _words(design, down), _words(design, across), fastest)


def _words(design: Design, factor: str) -> tuple[str, ...]:
    return tuple(level_words(design, factor, level) for level in design.values[factor])
