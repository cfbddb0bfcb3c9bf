"""A page with the files beside it: its data, and the raw readings of its timelines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis.results import Results
from harness.sections.contract.read import read_page
from harness.store.files import write_whole
from harness.store.layout import RunPaths
from reports.exports.results_file import results_text
from reports.page.page import render
from reports.page.raw_readings import write_readings

if TYPE_CHECKING:
    from harness.analysis.run_comparison import Versus


@dataclass(frozen=True)
class Written:
    """What was written, and what it says."""

    results: Results
    data: Path | None
    """The results.json; None beside what is no file."""


def _beside(page: Path) -> Path | None:
    """Name the data of a page: results.json for report.html, else after the page."""
    if page.exists() and not page.is_file():
        return None
    own = RunPaths(page.parent)
    return own.results if page == own.report else page.with_name(f"{page.stem}-results.json")


def write_page(runs: Sequence[Path], place: Path, *, comparison: Versus | None = None) -> Written:
    """Write the page of some runs; ``comparison`` is what changed between two of them."""
    results, evidence = read_page(runs)
    evidence = replace(evidence, comparison=comparison)
    readings = write_readings(evidence.timelines, place)
    page = render(results, evidence, place=place, readings=readings)
    write_whole(place, page)
    data = _beside(place)
    if data is not None:
        write_whole(data, results_text(results))
    return Written(results, data)
