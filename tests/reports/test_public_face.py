"""``import bakeoff`` is small, typed, light, and speaks to its user in sentences."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import bakeoff
from tests import runs

HEAVY = ("numpy", "scipy", "duckdb", "pydantic", "rich", "jinja2", "psutil", "pynvml", "click")


def test_the_public_face_is_what_it_was() -> None:
    assert bakeoff.__all__ == [
        "BakeoffError",
        "CellResult",
        "Comparison",
        "Estimate",
        "Interval",
        "ResultsFile",
        "TrialResult",
        "load",
    ]
    assert all(getattr(bakeoff, name).__doc__ for name in bakeoff.__all__)


def test_a_run_is_loaded_with_typed_values(tmp_path: Path) -> None:
    run = runs.write_run(tmp_path, [runs.RecordedCell()])
    rate = bakeoff.load(run).cells[0].rate
    assert isinstance(rate, bakeoff.Estimate)
    assert rate.unit == "images/s"
    assert rate.value == pytest.approx(16 / 0.02, rel=0.1)
    assert rate.n == 6
    assert isinstance(bakeoff.load(str(run)).cells[0].trials[0], bakeoff.TrialResult)


def test_a_run_is_found_by_its_name_under_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.write_run(tmp_path / "runs", [runs.RecordedCell()], runs.Recording(name="one"))
    monkeypatch.chdir(tmp_path)
    assert bakeoff.load("one").runs[0].name == "one"


def test_several_runs_are_loaded_side_by_side(tmp_path: Path) -> None:
    places = [
        runs.write_run(tmp_path, [runs.RecordedCell()], runs.Recording(name=name))
        for name in ("one", "two")
    ]
    assert {cell.run for cell in bakeoff.load(*places).cells} == {"one", "two"}
    assert bakeoff.load(tmp_path) == bakeoff.load(*places)


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ((), "no run was named"),
        (("nowhere",), "there is no such run"),
        (("nowhere.json",), "there is no such file"),
    ],
)
def test_a_user_s_mistake_is_told_in_a_sentence(
    named: tuple[str, ...], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(bakeoff.BakeoffError, match=why):
        bakeoff.load(*named)


def test_a_damaged_run_is_told_in_a_sentence(tmp_path: Path) -> None:
    run = runs.write_run(tmp_path, [runs.RecordedCell()])
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    (run / "plan.json").write_text(json.dumps({**plan, "cells": [{}]}), encoding="utf-8")
    with pytest.raises(bakeoff.BakeoffError, match=r"plan\.json is damaged"):
        bakeoff.load(run)


def test_importing_it_imports_nothing_heavy() -> None:
    script = f"import sys, bakeoff; print(sorted(set(sys.modules) & set({HEAVY!r})))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("package", ["bakeoff", "harness", "reports"])
def test_type_checkers_are_told_that_it_is_typed(package: str) -> None:
    """A single module cannot be marked so, which is why ``bakeoff`` is a package."""
    assert (Path(bakeoff.__file__).parents[1] / package / "py.typed").is_file()
