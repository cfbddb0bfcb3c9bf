"""Find the cells that are to be explained, and explain them from their run."""

from __future__ import annotations

from pathlib import Path

from harness.analysis.evidence import Evidence
from harness.analysis.explain.explanation import Explanation, explain
from harness.analysis.results import Results
from harness.errors import UsageError, nearest
from harness.store.layout import RunPaths
from harness.store.record_readers.attribution import Attribution, read_attribution
from harness.verdicts.results import CellResult


def pair_called(results: Results, first: str, second: str) -> tuple[CellResult, CellResult]:
    """Find two cells; of those that two names fit, the pair that differs least, if that is one."""
    pairs = [
        (one, other)
        for one in _fitting(results, first)
        for other in _fitting(results, second)
        if one.key != other.key
    ]
    differences = [_differences(*pair) for pair in pairs]
    if differences and differences.count(least := min(differences)) == 1:
        return pairs[differences.index(least)]
    return cell_called(results, first), cell_called(results, second)


def _differences(one: CellResult, other: CellResult) -> int:
    """Count the factors in which two cells differ, the workload among them."""
    names = one.factors.keys() | other.factors.keys()
    differing = [name for name in names if one.factors.get(name) != other.factors.get(name)]
    return len(differing) + (one.workload != other.workload)


def cell_called(results: Results, name: str) -> CellResult:
    """Find one cell by its name, by words that only its name has, or by the start of its key."""
    found = _fitting(results, name)
    if len(found) == 1:
        return found[0]
    named = {one.key: results.names[one.run, one.key] for one in results.cells}
    if not found:
        known = "\n    ".join(named.values())
        hint = nearest(name, named.values())
        raise UsageError(f"no cell is called '{name}'.{hint}\nCells:\n    {known}")
    several = ", ".join(f"{named[one.key]} ({one.key})" for one in found)
    raise UsageError(f"'{name}' fits several cells: {several}. Name one by more words or its key.")


def _fitting(results: Results, name: str) -> list[CellResult]:
    """Give the cells that a name fits."""
    named = {one.key: results.names[one.run, one.key] for one in results.cells}
    cells = {one.key: one for one in results.cells}
    words = set(_words(name))
    exact = [
        key
        for key, one in named.items()
        if name in (one, key, cells[key].label) or (words and words == set(_words(one)))
    ]
    close = [key for key, one in named.items() if words and words <= set(_words(one))]
    close = close or [key for key, one in cells.items() if words <= set(_words(one.label))]
    found = exact or close or [key for key in named if len(name) > 3 and key.startswith(name)]
    return [cells[key] for key in found]


def _words(name: str) -> list[str]:
    return name.replace("·", " ").split()


def attributions(results: Results) -> dict[str, Attribution | str]:
    """Read what the steps of one run's cells divide into, or why that is not known."""
    if len(results.runs) > 1:
        return {}  # cells of several runs were not paired in blocks
    paths = RunPaths(Path(results.runs[0].directory))
    return {cell.key: read_attribution(paths, cell.key) for cell in results.cells}


def explained(
    results: Results, evidence: Evidence, one: CellResult, other: CellResult
) -> Explanation:
    """Explain the slower of two cells of a run, of which was gathered what holds cells back."""
    seed, read = results.runs[0].seed, evidence.attributions or {}
    return explain(one, other, read, seed=seed, floors=evidence.floors)
