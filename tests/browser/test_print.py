"""A printed page holds what a reader of paper needs, and fills its sheets."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from reports.page.page import render
from tests import needs
from tests.reports import samples

pytestmark = pytest.mark.browser


def sheets_of(page, printed: Path) -> list[str]:
    """Print a page, and read the words of each sheet."""
    page.pdf(path=printed, prefer_css_page_size=True)
    reader = needs.program("pdftotext", package="poppler-utils")
    told = subprocess.run([str(reader), printed, "-"], check=True, capture_output=True, text=True)
    return told.stdout.split("\f")


def test_what_is_folded_on_the_screen_is_printed(visit, tmp_path):
    warned = dataclasses.replace(samples.demo(), warnings=tuple(f"remark {i}" for i in range(9)))
    told = "".join(sheets_of(visit(render(warned)).page, tmp_path / "report.pdf"))
    assert "remark 8" in told
    assert "AMD EPYC" in told


def test_folded_sections_are_printed_and_then_folded_again(visit, tmp_path):
    page = visit(render(samples.factorial(2, 2, 4))).page
    told = "".join(sheets_of(page, tmp_path / "report.pdf"))
    assert "Each dot is a trial at its rate" in told
    assert "Trials and blocks" in told
    assert page.locator(".whole[open]").count() == 0


def test_a_long_ranking_fills_a_sheet_and_goes_on_with_its_headings_on_the_next(visit, tmp_path):
    page = visit(render(samples.many_failures())).page
    _, second, third, *_ = sheets_of(page, tmp_path / "report.pdf")
    assert "The fastest cell for each framework" in second
    assert "× reference" in second
    assert "× reference" in third
