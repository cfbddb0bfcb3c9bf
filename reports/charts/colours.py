"""Give each framework one colour for a whole page; with several runs, each run."""

from __future__ import annotations

from collections.abc import Mapping

from harness.analysis.results import Results

_COLOURS = 8


def colours_of(results: Results) -> dict[str, int]:
    """Number the colours; what a colour means is the same in every drawing of a page."""
    if len(results.runs) > 1:
        names = dict.fromkeys(cell.run for cell in results.cells)
    else:
        names = dict.fromkeys(sorted({cell.framework for cell in results.cells}))
    return {name: index % _COLOURS + 1 for index, name in enumerate(names)}


def colour_of(colours: Mapping[str, int], run: str, framework: str) -> int:
    """Give a cell's colour."""
    return colours.get(run) or colours.get(framework, 1)
