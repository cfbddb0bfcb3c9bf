"""These tests hold exposed communication to the difference it is, and its cells out of rankings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.analysis.scaling.gradient_exchange import communication, splits
from harness.analysis.scaling.scaling import scaling_lines
from harness.analysis.tables import records
from harness.store.dataset import Dataset
from harness.verdicts.io_results import InputResult
from harness.verdicts.results import CellResult
from reports.page.page import render
from tests.runs import Behaviour, RecordedCell, Recording, write_run

QUIET = Behaviour(trial_noise=0.0, window_noise=0.001, windows=10)


def test_exposed_communication_is_a_step_less_the_same_without_exchange(tmp_path: Path) -> None:
    together = {"nodes": 2, "strategy": "ddp", "communicate": True}
    slow, fast = (replace(QUIET, step_s=seconds) for seconds in (0.025, 0.020))
    cells = [
        RecordedCell(factors={"communicate": True}, behaviour=fast),
        RecordedCell(factors=together, behaviour=slow),
        RecordedCell(factors={**together, "communicate": False}, behaviour=fast),
    ]
    told = analyse(Dataset([write_run(tmp_path, cells, Recording())]))
    (row,) = records(communication(told))
    assert row["exposed_ms"] == pytest.approx(5.0, rel=0.05)
    assert row["exposed_interval_low"] <= row["exposed_ms"] <= row["exposed_interval_high"]
    assert row["share"] == pytest.approx(0.2, rel=0.05)
    (ranking,) = told.rankings
    assert [cell.factors["communicate"] for cell in ranking.cells] == [True, True]
    assert [cell.comparison for cell in ranking.set_aside] == [None]
    assert [line.points[-1].cell.factors["communicate"] for line in scaling_lines(told)] == [True]
    assert [part for part, _ in splits(told)[0].parts_s] == ["computing", "exposed communication"]
    assert "Exposed communication" in render(told)


def test_waiting_for_input_is_a_part_of_the_step_of_its_own(tmp_path: Path) -> None:
    together = {"nodes": 2, "strategy": "ddp", "communicate": True}
    slow, fast = (replace(QUIET, step_s=seconds) for seconds in (0.025, 0.020))
    cells = [
        RecordedCell(factors=together, behaviour=slow),
        RecordedCell(factors={**together, "communicate": False}, behaviour=fast),
    ]
    told = analyse(Dataset([write_run(tmp_path, cells, Recording())]))
    fed = tuple(
        replace(cell, trials=tuple(replace(one, input=_waiting(cell)) for one in cell.trials))
        for cell in told.cells
    )
    (split,) = splits(replace(told, cells=fed))
    parts = dict(split.parts_s)
    assert parts["waiting for input"] == pytest.approx(0.005, rel=0.05)
    assert parts["exposed communication"] == pytest.approx(0.002, rel=0.2)
    assert sum(parts.values()) == pytest.approx(0.025, rel=0.05)


def test_parts_add_up_to_a_step_whose_medians_do_not(tmp_path: Path) -> None:
    together = {"nodes": 2, "strategy": "ddp", "communicate": True}
    cells = [RecordedCell(factors={**together, "communicate": told}) for told in (True, False)]
    results = analyse(Dataset([write_run(tmp_path, cells, Recording())]))
    blocks = {1: (1.0, 0.9), 2: (1.0, 0.1), 3: (3.0, 1.5)}  # a step, and what it waits

    def timed(cell: CellResult) -> CellResult:
        trials = []
        for one in cell.trials[:3]:
            step_s, waited_s = blocks[one.block] if cell.factors["communicate"] else (0.01, 0.0)
            fed = InputResult(cache="cold", wait_share=waited_s / step_s)
            trials.append(replace(one, rate=cell.scale.batch_per_step / step_s, input=fed))
        return replace(cell, trials=tuple(trials))

    (split,) = splits(replace(results, cells=tuple(map(timed, results.cells))))
    parts = dict(split.parts_s)
    assert sum(parts.values()) == pytest.approx(1.0)
    assert min(parts.values()) >= 0
    assert parts["exposed communication"] == pytest.approx(0.89)


def _waiting(cell: CellResult) -> InputResult:
    return InputResult(cache="cold", wait_share=0.2 if cell.factors["communicate"] else 0.1)
