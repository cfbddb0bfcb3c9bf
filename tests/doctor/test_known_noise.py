"""These tests hold what is kept of how much trials scatter, and what a later plan makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness import user_folders
from harness.analysis.analyse import analyse
from harness.cli.verbs.plan import command as plan_command
from harness.doctor import known_noise
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName
from harness.store.outcome import TurnsRecord, read_outcome, write_outcome
from harness.study.study import load_study
from tests.runs import Behaviour, RecordedCell, Recording, write_run
from tests.turn_runs import Sharing, take_turns

STUDY = """title = "Known"
[matrix]
workload = "tinycnn"
framework = "null"
batch = [1, 2]
[measure]
turns = false
"""


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def made(folder: Path) -> Plan:
    file = folder / "study.toml"
    file.write_text(STUDY)
    return make_plan(load_study(file), load_platform("local"))


def learnt(folder: Path, noise: float, *, name: str = "one") -> None:
    behaviour = Behaviour(trial_noise=noise, window_noise=0.004)
    cells = [RecordedCell(framework=one, behaviour=behaviour) for one in ("torch", "jax")]
    recording = Recording(name=name, trials=40, platform={"name": "local"})
    known_noise.learn(analyse(Dataset([write_run(folder, cells, recording)])))


def test_a_plan_knows_by_how_much_trials_scattered_here(tmp_path: Path) -> None:
    plan = made(tmp_path)
    assert known_noise.known(plan) is None
    learnt(tmp_path, 0.02)
    told = known_noise.known(plan)
    assert told is not None
    assert told.scatter == pytest.approx(0.02, rel=0.4)
    assert (told.runs, told.is_of_these_cells) == (1, False)


def test_cells_that_ran_here_speak_for_themselves(tmp_path: Path) -> None:
    plan = made(tmp_path)
    learnt(tmp_path, 0.02)
    (file,) = (user_folders.state_home() / "noise").iterdir()
    content = json.loads(file.read_text())
    own = {"run": "own", "cells": {plan.cells[1].key: [5, 0.0001], "damaged": [5, "x"]}}
    file.write_text(json.dumps({**content, "runs": [*content["runs"], own]}))
    told = known_noise.known(plan)
    assert told is not None
    assert (told.scatter, told.is_of_these_cells) == (pytest.approx(sqrt(0.0001)), True)


def test_turns_tell_what_a_longer_trial_would_not_change(tmp_path: Path) -> None:
    by_turns = tmp_path / "turns.toml"
    by_turns.write_text(STUDY.replace("turns = false\n", 'until = "7 s"\n'))
    plan = make_plan(load_study(by_turns), load_platform("local"))
    cells = [
        RecordedCell(framework=one, behaviour=Behaviour(trial_noise=0.05, windows=70))
        for one in ("torch", "jax")
    ]
    recording = Recording(trials=40, platform={"name": "local"}, measure={"turns": True})
    run = take_turns(write_run(tmp_path, cells, recording), cells, Sharing())
    known_noise.learn(analyse(Dataset([run])))
    told = known_noise.known(plan)
    assert told is not None
    assert told.split is not None
    assert told.split.stays == pytest.approx(0.05**2, rel=0.5)
    assert 0 < told.split.shrinks < 0.01**2
    assert told.split.variance(1.0) > told.split.variance(60.0)


def test_a_run_is_kept_once_and_what_is_damaged_is_nothing(tmp_path: Path) -> None:
    learnt(tmp_path / "a", 0.02)
    learnt(tmp_path / "b", 0.02)
    (file,) = (user_folders.state_home() / "noise").iterdir()
    assert len(json.loads(file.read_text())["runs"]) == 1
    learnt(tmp_path, 0.02, name="another")
    assert len(json.loads(file.read_text())["runs"]) == 2
    file.write_text("{")
    assert known_noise.known(made(tmp_path)) is None


def test_nothing_is_learnt_of_cells_that_took_turns_with_others(tmp_path: Path) -> None:
    base, cell = (RecordedCell(framework=one) for one in ("torch", "jax"))
    run = take_turns(write_run(tmp_path, [base, cell]), [base, cell], Sharing())
    known_noise.learn(analyse(Dataset([run])))
    (file,) = (user_folders.state_home() / "noise").iterdir()
    file.unlink()
    for trial in (RunPaths(run).trial(cell.key, TrialName(block)) for block in range(1, 7)):
        outcome = read_outcome(trial)
        trial.outcome.unlink()
        others = TurnsRecord(together={cell.key: str(outcome.trial)}, rounds=7, at_work_s=1.0)
        write_outcome(replace(outcome, turns=others), trial, settled=False)
    known_noise.learn(analyse(Dataset([run])))
    assert list(file.parent.iterdir()) == []


def test_what_a_model_said_is_not_kept(tmp_path: Path) -> None:
    results = analyse(Dataset([write_run(tmp_path, [RecordedCell()])]))
    simulated = {"name": "m", "launcher": {"name": "simulated"}}
    known_noise.learn(
        replace(results, runs=tuple(replace(one, platform=simulated) for one in results.runs))
    )
    assert not (user_folders.state_home() / "noise").exists()


def test_the_plan_says_what_it_can_tell_by_that(tmp_path: Path) -> None:
    learnt(tmp_path, 0.5)
    made(tmp_path)
    told = CliRunner().invoke(plan_command, [str(tmp_path / "study.toml")])
    assert "as those of other cells did in an earlier run here" in told.output
    assert 'Note: expect "cannot tell"' in told.output
