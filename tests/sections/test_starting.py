"""These tests hold what is said of ranks' starts to what agents and ranks recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.analysis.tables import records
from harness.sections.starting import starting
from harness.store.dataset import Dataset
from reports.page.page import render
from tests.runs import RecordedCell, Recording, write_run


def test_the_last_rank_counts_and_the_image_costs_what_it_adds(tmp_path: Path) -> None:
    there = {"nodes": 2, "strategy": "ddp"}
    cells = [
        RecordedCell(factors={**there, "container": False}, start_s=0.2),
        RecordedCell(factors={**there, "container": True}, start_s=0.5),
    ]
    data = Dataset([write_run(tmp_path, cells, Recording())])
    told = analyse(data)
    by_box = {row["container"]: row for row in records(starting(told))}
    assert by_box[False]["entered_s"] == pytest.approx(0.3)
    assert by_box[True]["entered_s"] == pytest.approx(0.6)
    assert by_box[True]["first_s"] == pytest.approx(0.5)
    assert by_box[True]["image_ms"] == pytest.approx(300)
    assert by_box[False]["image_ms"] is None
    assert "How long ranks take to start" in render(told)
    rows = data.sql("SELECT DISTINCT end_ns - start_ns FROM phases WHERE phase = 'start'").rows
    took = sorted(int(row[0]) / 1e9 for row in rows)
    assert took == pytest.approx([0.2, 0.3, 0.5, 0.6])


def test_of_one_node_without_a_container_nothing_is_said(tmp_path: Path) -> None:
    told = analyse(Dataset([write_run(tmp_path, [RecordedCell(start_s=0.2)], Recording())]))
    assert told.cells[0].trials[0].starts[0].entered_s == pytest.approx(0.2)
    assert starting(told).rows == ()


def test_runs_from_before_starts_were_timed_are_read_without_them(tmp_path: Path) -> None:
    told = analyse(Dataset([write_run(tmp_path, [RecordedCell(factors={"nodes": 2})])]))
    assert told.cells[0].trials[0].starts == ()
    assert starting(told).rows == ()
