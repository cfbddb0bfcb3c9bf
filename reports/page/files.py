"""A page with the files beside it: its data, and the raw readings of its timelines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.sections.contract.read import read_page
from harness.store.contained import Contained
from harness.store.files import write_whole
from harness.store.layout import RunPaths
from reports.exports.results_file import results_text
from reports.page.page import render
from reports.page.raw_readings import write_readings

if TYPE_CHECKING:
    from harness.analysis.between_runs.run_comparison import Versus


@dataclass(frozen=True)
class Written:
    """What was written, and what it says."""

    results: Results
    evidence: Evidence
    data: Path | None
    """The results.json; None beside what is no file."""


def _place_inside(page: Path, runs: Sequence[Path]) -> tuple[Contained, Path]:
    """Find what writes a page and the files beside it: it follows no link of one of the runs."""
    place = Path(os.path.abspath(page))  # noqa: PTH100  resolving would follow links
    roots = (run.absolute() for run in runs)
    root = next((one for one in roots if place.is_relative_to(one)), place.parent)
    return Contained(root), place


def _beside(page: Path) -> Path:
    """Name the data of a page: results.json for report.html, else after the page."""
    own = RunPaths(page.parent)
    return own.results if page == own.report else page.with_name(f"{page.stem}-results.json")


def write_page(runs: Sequence[Path], place: Path, *, comparison: Versus | None = None) -> Written:
    """Write the page of some runs; ``comparison`` is what changed between two of them."""
    results, evidence = read_page(runs)
    evidence = replace(evidence, comparison=comparison)
    files, page = _place_inside(place, runs)
    is_own = not any(page.is_relative_to(run.absolute()) for run in runs)
    if is_own and page.exists() and not page.is_file():
        write_whole(place, render(results, evidence, place=place))  # a pipe has nothing beside it
        return Written(results, evidence, None)
    readings = write_readings(evidence.timelines, page, files)
    files.write(page, render(results, evidence, place=place, readings=readings))
    data = _beside(page)
    files.write(data, results_text(results, evidence))
    return Written(results, evidence, data)
