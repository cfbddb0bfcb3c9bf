"""Give each cell its place on a page: an anchor, and what a browser needs to show it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.analysis.cell_names import factor_value, factor_words
from harness.analysis.context.run_again import only, run_again
from harness.analysis.ranking import side_word
from harness.analysis.results import Results
from harness.verdicts.results import CellResult


@dataclass(frozen=True)
class CellPlaces:
    """The anchors of a page's cells, by run and key, and all of them as data for the browser."""

    anchors: Mapping[tuple[str, str], str]
    places: Mapping[str, int]
    """Of each name that is one cell's alone, where that stands among all."""
    data: str
    """JSON that may stand within HTML."""

    @classmethod
    def of(cls, results: Results) -> CellPlaces:
        """Name each cell after its key; of several runs also after its run's place among them."""
        runs = {run.name: index for index, run in enumerate(results.runs, 1)}
        anchors = {
            (cell.run, cell.key): _anchor(cell.key, runs.get(cell.run, 0), len(runs) > 1)
            for cell in results.cells
        }
        called = [results.names[cell.run, cell.key] for cell in results.cells]
        count = Counter(called)
        places = {name: at for at, name in enumerate(called) if count[name] == 1}
        return cls(anchors, places, _data(results, anchors))

    def place_of(self, name: str, workload: str) -> int | None:
        """Find the one cell of that name, alone or below its workload's; None if none is."""
        return self.places.get(name, self.places.get(f"{workload} · {name}"))

    def of_path(self, path: str) -> str:
        """Give the anchor of the cell whose raw data lie there; empty where none does."""
        run, _, place = path.rpartition("/cells/")
        return self.anchors.get((run, place.split("/")[0]), "")


def in_page(told: object) -> str:
    """Write JSON that may stand within HTML."""
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _anchor(key: str, run: int, are_several: bool) -> str:
    words = "".join(one if one.isalnum() and one.isascii() else "-" for one in key)
    return f"cell-{run}-{words}" if are_several else f"cell-{words}"


def _data(results: Results, anchors: Mapping[tuple[str, str], str]) -> str:
    """Lay out names, factors and commands; a factor's values stand there once."""
    machine = ("machine",) if len(results.runs) > 1 else ()
    factors = list(dict.fromkeys(("workload", "framework", *machine, *results.varied)))
    seen: dict[str, dict[tuple[str, str], int]] = {name: {} for name in factors}

    def place(cell: CellResult, name: str) -> int:
        both = _said(cell, name), only(cell, name)
        return seen[name].setdefault(both, len(seen[name]))

    cells = {
        anchors[cell.run, cell.key]: [
            results.names[cell.run, cell.key],
            *(place(cell, name) for name in factors),
        ]
        for cell in results.cells
    }
    told: dict[str, Any] = {
        "factors": [
            [
                side_word(results.runs) if name == "machine" else name.replace("_", " "),
                *map(list, zip(*seen[name], strict=True)),
            ]
            for name in factors
        ],
        "cells": cells,
        "runs": [[run.name, run_again(run)] for run in results.runs],
    }
    return in_page(told)


def _said(cell: CellResult, name: str) -> str:
    if name == "machine":
        return cell.run
    value = factor_value(cell, name)
    if name in ("workload", "framework"):
        return str(value)
    return factor_words(name, value) or "–"
