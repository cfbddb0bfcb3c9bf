"""Find the cells that are to be explained, and explain them from their run."""

from __future__ import annotations

from pathlib import Path

from harness.analysis.explain.explanation import Explanation, explain
from harness.analysis.floors.kept_floors import floors_of
from harness.analysis.results import Results
from harness.errors import UsageError, nearest
from harness.store.attribution import Attribution, read_attribution
from harness.store.layout import RunPaths
from harness.verdicts.results import CellResult


def cell_called(results: Results, name: str) -> CellResult:
    """Find one cell by its name, by words that only its name has, or by the start of its key."""
    named = {one.key: results.names[one.run, one.key] for one in results.cells}
    cells = {one.key: one for one in results.cells}
    exact = [key for key, one in named.items() if name in (one, key, cells[key].label)]
    words = set(_words(name))
    close = [key for key, one in named.items() if words and words <= set(_words(one))]
    close = close or [key for key, one in cells.items() if words <= set(_words(one.label))]
    found = exact or close or [key for key in named if len(name) > 3 and key.startswith(name)]
    if len(found) == 1:
        return cells[found[0]]
    known = "\n    ".join(named.values())
    if not found:
        hint = nearest(name, named.values())
        raise UsageError(f"no cell is called '{name}'.{hint}\nCells:\n    {known}")
    several = ", ".join(f"{named[key]} ({key})" for key in found)
    raise UsageError(f"'{name}' fits several cells: {several}. Name one by more words or its key.")


def _words(name: str) -> list[str]:
    return name.replace("·", " ").split()


def attributions(results: Results) -> dict[str, Attribution | str]:
    """Read what the steps of one run's cells divide into, or why that is not known."""
    if len(results.runs) > 1:
        return {}  # cells of several runs were not paired in blocks
    paths = RunPaths(Path(results.runs[0].directory))
    return {cell.key: read_attribution(paths, cell.key) for cell in results.cells}


def explained(results: Results, one: CellResult, other: CellResult) -> Explanation:
    """Explain the slower of two cells of a run."""
    return explain(
        one,
        other,
        attributions(results),
        seed=results.runs[0].seed,
        floors=floors_of(results),
    )
