"""This file holds what a ladder concludes: which rung loses most, and what that is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.store.results import InputResult, Results
from reports.evidence import Evidence
from reports.input import BYTES, LOADER, MODEL, PARSED, bottleneck, goodput, ladders
from reports.page import render
from tests.reports import samples


@pytest.mark.parametrize(
    ("rates", "compute", "is_cold", "said"),
    [
        ({BYTES: 100.0, PARSED: 98.0}, None, True, "storage-bound"),
        ({BYTES: 100.0, PARSED: 60.0}, None, True, "CPU-bound"),
        ({BYTES: 100.0, PARSED: 98.0}, None, False, "CPU-bound"),
        ({BYTES: 100.0, LOADER: 80.0, MODEL: 9.8}, 10.0, True, "compute-bound"),
        ({BYTES: 100.0, LOADER: 98.0, MODEL: 97.0}, 500.0, True, "storage-bound"),
        ({BYTES: 100.0, LOADER: 50.0, MODEL: 48.0}, 500.0, True, "CPU-bound"),
        ({LOADER: 50.0, MODEL: 20.0}, 60.0, True, "CPU-bound"),
        ({MODEL: 20.0}, 60.0, True, ""),
        ({BYTES: 13.0, PARSED: 61.0}, None, False, ""),
        ({BYTES: 100.0}, None, True, ""),
    ],
)
def test_the_bottleneck_is_the_rung_that_loses_most(
    rates: dict[int, float], compute: float | None, is_cold: bool, said: str
) -> None:
    assert bottleneck(rates, compute, is_cold=is_cold) == said


def results() -> Results:
    """Give two rungs of the same files, and a reader beside a burn that others slow down."""
    made = samples.demo()
    told = InputResult(cache="cold", cold_fraction=1.0, wait_share=0.01, bytes_per_s=1.5e6)
    files = {"format": "raw", "samples": 256, "cache": "cold", "batch": 32, "tier": "hdd"}
    cells = []
    for cell, factors in zip(
        made.cells,
        (
            {"reader": "pread"},
            {"reader": "threads"},
            {"reader": "threads", "compute": "burn", "compute_ms": 100},
        ),
        strict=False,
    ):
        trials = tuple(replace(one, input=told) for one in cell.trials)
        own = {"workload": "read-small-pictures", "framework": "null"}
        cells.append(replace(cell, factors={**files, **factors}, trials=trials, **own))
    return replace(made, cells=tuple(cells))


def test_a_busy_processor_raises_utilisation_and_lowers_goodput() -> None:
    told = results()
    beside = told.cells[2]
    assert beside.rate is not None
    assert goodput(beside, told) == pytest.approx(0.1 * beside.rate.value / 32)
    assert "99 %" in render(told)


def test_the_page_has_a_ladder_without_the_cells_that_compute_and_a_table_with_them() -> None:
    told = results()
    (ladder,) = ladders(told)
    assert (ladder.title, ladder.state) == ("256 small-pictures in raw files on hdd", "cold")
    assert [rung.name.partition(":")[0] for rung in ladder.rungs] == [
        "bytes read",
        "file format parsed",
    ]
    page = render(told, Evidence(ladders=(ladder,)))
    assert "What was read, where from, and how long was waited" in page
    assert ladder.title in page
