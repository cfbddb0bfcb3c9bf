"""Hold every view to never ranking, comparing or quoting a cell that is not what it is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.analysis.context import closest_figure
from harness.analysis.context.roofline import roof
from harness.analysis.files.goodput import without_input
from harness.analysis.results import Results
from harness.analysis.scaling.scaling import scaling_lines
from harness.analysis.tables import records
from harness.sections.contract.section import sections, table
from harness.store.records import Gate
from harness.verdicts.results import CellResult, Contradiction, WhatRan
from reports.exports.formats.junit import of_results as as_junit
from reports.exports.results_file import summary
from reports.text.answer import answer
from reports.text.terminal import render as in_words
from tests.reports import samples

WHY = "fc: output is 3.1e-02 off"


REFUSED = {
    "differs": {"gate": Gate("differs", WHY)},
    "crashed": {"gate": Gate("examination failed", WHY)},
    "in fp32": {"ran": WhatRan(contradictions=(Contradiction("bf16", "ran fp32", WHY, True),))},
}


@pytest.fixture(params=REFUSED)
def results(request: pytest.FixtureRequest) -> Results:
    """Give a study whose fastest cell, its reference, is not what it is called."""
    made = samples.demo()
    fastest = max(made.cells, key=lambda cell: cell.rate.value if cell.rate else 0.0)
    refused = replace(fastest, **REFUSED[request.param], comparison=None)
    return replace(made, cells=tuple(refused if one is fastest else one for one in made.cells))


@pytest.fixture
def wrong(results: Results) -> CellResult:
    return next(cell for cell in results.cells if cell.refusal)


def test_it_has_no_place_in_the_ranking_and_is_named_with_why(results, wrong) -> None:
    (ranking,) = (one for one in answer(results).rankings if one.workload == wrong.workload)
    name = ranking.name(wrong)
    assert name not in [
        row["cell"]
        for row in records(table(sections(results), "ranking"))
        if row["workload"] == wrong.workload
    ]
    told = summary(results)
    assert any(name in warning and WHY in warning for warning in told.warnings)
    for sentence in told.answers:
        assert sentence.workload != wrong.workload or not sentence.answer.startswith(name)
    assert WHY in " ".join(in_words(results).split())
    assert name not in [line.cell for line in told.ranking if line.workload == wrong.workload]


def test_exports_of_all_cells_say_so_and_give_it_no_comparison(results, wrong) -> None:
    rows = [
        row
        for row in records(table(sections(results), "cells"))
        if (row["rate"], row["gate"]) == (wrong.rate.value, wrong.gate.state)
    ]
    assert len(rows) == 1
    assert rows[0]["answer"] is None
    assert rows[0]["published"] is None
    assert WHY in as_junit(results)


def test_nothing_is_derived_from_it(results, wrong) -> None:
    assert (wrong.run, wrong.key) not in closest_figure.normal(results)
    assert all(wrong is not point.cell for one in scaling_lines(results) for point in one.points)
    assert without_input(replace(wrong, factors=dict(wrong.factors)), results) is not wrong
    assert not roof(replace(results, cells=(wrong,)))[1]
