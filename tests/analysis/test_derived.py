"""These tests hold derived figures to their conventions, and what cannot be true to its mark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis import tables
from harness.analysis.analyse import analyse
from harness.analysis.context.derived import derived
from harness.analysis.results import Results
from harness.analysis.scaling import scaling
from harness.sections.cells import cells
from harness.store.dataset import Dataset
from harness.store.records import RunInfo
from harness.verdicts.results import CellResult
from tests.runs import Behaviour, RecordedCell, Recording, write_run

QUIET = Behaviour(trial_noise=0.0, window_noise=0.001, windows=10)
CELL = RecordedCell(behaviour=QUIET)
MACHINE = {"name": "priced", "title": "A priced machine", "price_per_node_hour": "3.06 USD"}


def results(folder: Path, *cells: RecordedCell, **platform: object) -> Results:
    told = Recording(platform={**MACHINE, **platform}, block_noise=0.0)
    return analyse(Dataset([write_run(folder, cells, told)]))


def measured(folder: Path, cell: RecordedCell = CELL, **more: object) -> tuple[CellResult, RunInfo]:
    told = results(folder, cell, **more)
    return told.cells[0], told.runs[0]


def test_training_counts_three_forward_passes_of_two_operations_a_mac(tmp_path: Path) -> None:
    cell, run = measured(tmp_path)
    assert cell.rate is not None
    assert derived(cell, run).flops == pytest.approx(6 * 9_000_000 * cell.rate.value)


def test_a_price_gives_work_per_currency_and_per_node_hour(tmp_path: Path) -> None:
    cell, run = measured(tmp_path, replace(CELL, factors={"nodes": 2}))
    assert cell.rate is not None
    told = derived(cell, run)
    assert told.per_node_hour == pytest.approx(cell.rate.value * 1800)
    assert told.per_price == pytest.approx(cell.rate.value * 1800 / 3.06)
    assert told.currency == "USD"


def test_without_a_price_or_macs_nothing_is_derived(tmp_path: Path) -> None:
    bare = replace(CELL, macs=None, unit="bytes")
    told = derived(*measured(tmp_path, bare, price_per_node_hour=None))
    assert (told.flops, told.per_price, told.per_node_hour, told.mark) == (None,) * 4


def test_more_than_a_ceiling_allows_is_marked(tmp_path: Path) -> None:
    ceilings = {"cpu-fp32": {"compute": 1e9, "tag": "declared", "source": "a test"}}
    told = results(tmp_path, CELL, ceilings=ceilings)
    (row,) = tables_as_dicts(cells(told, {}))
    assert row["share_of_ceiling"] > 1
    assert "declared ceiling cpu-fp32 cannot be" in row["derived_mark"]


def tables_as_dicts(table: tables.Table) -> list[dict[str, object]]:
    heads, rows = tables.flat(table)
    return [dict(zip(heads, row, strict=True)) for row in rows]


def test_an_efficiency_over_one_and_a_wrong_baseline_are_marked(tmp_path: Path) -> None:
    two, four = ({"ranks_per_node": ranks, "strategy": "ddp"} for ranks in (2, 4))
    base = replace(CELL, factors=two)
    fast = replace(CELL, factors=four, behaviour=replace(QUIET, step_s=0.018))
    rows = tables_as_dicts(scaling.scaling(results(tmp_path, base, fast)))
    assert rows[0]["mark"] == "baseline"
    assert rows[1]["mark"] == (
        "more than 100 %: check the baseline; compared with 2 devices, not with one"
    )


def test_batches_of_a_device_and_of_all_devices_are_no_line_and_are_said(tmp_path: Path) -> None:
    one = replace(CELL, factors={"batch": 32})
    two = replace(CELL, factors={"batch": 16, "global_batch": 32, "ranks_per_node": 2})
    told = results(tmp_path, one, two)
    assert scaling.scaling_lines(told) == []
    assert any("their steps are not the same work" in warning for warning in told.warnings)


def test_a_global_batch_makes_a_line_of_strong_scaling(tmp_path: Path) -> None:
    cells = [
        replace(CELL, factors={"batch": 32 // n, "global_batch": 32, "ranks_per_node": n})
        for n in (1, 2)
    ]
    rows = tables_as_dicts(scaling.scaling(results(tmp_path, *cells)))
    assert [row["batch"] for row in rows] == ["32 in all (strong scaling)"] * 2
