"""Hold a cell's trials to being ranked only where the gate passed all that they ran."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.store import gate_results
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName
from reports.page.page import render
from tests.outcomes import seal
from tests.runs import RecordedCell, write_run

TORCH = RecordedCell()
JAX = RecordedCell(framework="jax")
GOOD = {"state": "equivalent", "detail": "float64, 3e-11"}
BAD = {"state": "differs", "detail": "fc: output is 3.1e-02 off"}


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return RunPaths(write_run(tmp_path, [TORCH, JAX]))


def mix(paths: RunPaths, key: str, block: int) -> None:
    """Make a trial one of changed code."""
    trial = paths.trial(key, TrialName(block))
    trial.outcome.write_text(trial.outcome.read_text().replace('"f1"', '"f2"'))
    seal(trial)


def gate(paths: RunPaths, key: str = TORCH.key):
    (cell,) = (one for one in analyse(Dataset([paths.root])).cells if one.key == key)
    return cell.gate


def test_what_differs_after_the_code_changed_is_not_ranked(paths) -> None:
    gate_results.store_result(paths, TORCH.key, "f1", GOOD)
    mix(paths, TORCH.key, 6)
    assert gate(paths).state == "not checked"
    assert "other code" in gate(paths).detail
    gate_results.store_result(paths, TORCH.key, "f2", BAD)
    assert gate(paths).state == "differs"
    assert "for 1 of 2 states of the code" in gate(paths).detail


def test_what_differed_before_the_code_changed_stays_greyed(paths) -> None:
    gate_results.store_result(paths, TORCH.key, "f1", BAD)
    mix(paths, TORCH.key, 6)
    assert gate(paths).state == "differs"
    gate_results.store_result(paths, TORCH.key, "f2", GOOD)
    assert gate(paths).state == "differs"


def test_a_result_of_code_that_no_trial_ran_says_nothing(paths) -> None:
    gate_results.store_result(paths, TORCH.key, "f1", GOOD)
    gate_results.store_result(paths, TORCH.key, "f9", BAD)
    assert gate(paths).state == "equivalent"
    assert gate_results.checked_fingerprints(paths, TORCH.key) == {"f1", "f9"}


def test_results_of_an_older_bakeoff_hold_for_one_state_of_the_code(tmp_path) -> None:
    paths = RunPaths(write_run(tmp_path, [replace(TORCH, gate="equivalent")]))
    assert gate(paths).state == "equivalent"
    mix(paths, TORCH.key, 6)
    assert gate(paths).state == "not checked"


@pytest.mark.parametrize("content", ["{", "[]", '{"version": 2}', '{"version": 2, "found": [1]}'])
def test_a_damaged_result_is_as_if_there_were_none_and_written_anew(paths, content) -> None:
    gate_results.store_result(paths, TORCH.key, "f1", BAD)
    (paths.gate / f"{TORCH.key}.json").write_text(content)
    assert gate(paths).state == "not checked"
    assert "`bakeoff resume` writes it anew" in gate(paths).detail
    assert gate_results.checked_fingerprints(paths, TORCH.key) == frozenset()
    gate_results.store_result(paths, TORCH.key, "f1", GOOD)
    assert gate(paths).state == "equivalent"


def test_sql_shows_what_the_gate_said(paths) -> None:
    gate_results.store_result(paths, TORCH.key, "f1", BAD)
    asked = Dataset([paths.root]).sql("SELECT framework, gate, gate_detail FROM cells ORDER BY 1")
    assert asked.rows == (
        ("jax", "not checked", "the equivalence gate was not run for this cell"),
        ("torch", "differs", "fc: output is 3.1e-02 off"),
    )


def test_a_page_says_why_a_result_is_not_believed(paths) -> None:
    gate_results.store_result(paths, TORCH.key, "f1", BAD)
    file = paths.gate / f"{TORCH.key}.json"
    file.write_text(file.read_text().replace("differs", "equivalent"))
    page = render(analyse(Dataset([paths.root])))
    assert f"{file.name} was changed by hand and is not believed" in page
