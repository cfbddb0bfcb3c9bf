"""These tests read recorded runs as tables."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.errors import RunError, UsageError
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName
from harness.store.sql import schema
from tests.outcomes import seal_all
from tests.runs import Behaviour, RecordedCell, Recording, write_run

SHORT = Behaviour(windows=10, warmup=3)
CELLS = (RecordedCell(behaviour=SHORT), RecordedCell(framework="jax", behaviour=SHORT))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path, CELLS)


def one(dataset: Dataset, query: str) -> object:
    return dataset.sql(query).rows[0][0]


def test_every_table_answers(run: Path) -> None:
    dataset = Dataset([run])
    counted = {name: one(dataset, f'select count(*) from "{name}"') for name in schema.NAMES}
    assert counted == {
        "runs": 1,
        "cells": 2,
        "trials": 12,
        "ranks": 12,
        "windows": 12 * 13,
        "epochs": 0,
        "checkpoints": 0,
        "turns": 0,
        "units": 12,
        "values": 12,
        "phases": 12 * 5,
        "facts": 24,
        "versions": 12,
        "samples": 0,
    }


def test_tables_have_the_columns_their_documentation_names(run: Path) -> None:
    dataset = Dataset([run])
    assert schema.__doc__ is not None
    documented = " ".join(schema.__doc__.split("trial-3:")[1].split())
    for name in schema.NAMES:
        columns = dataset.sql(f'select * from "{name}"').columns
        assert f"{name} {', '.join(columns)}" in documented


def test_window_times_are_those_that_were_recorded(run: Path) -> None:
    rows = Dataset([run]).sql(
        "select avg((end_ns - start_ns) / steps) / 1e9 from windows where phase = 'measure'"
    )
    assert rows.rows[0][0] == pytest.approx(SHORT.step_s, rel=0.05)


def test_phases_end_where_the_next_begins(run: Path) -> None:
    rows = Dataset([run]).sql("select count(*) from phases where end_ns < start_ns").rows
    assert rows == ((0,),)


def test_factors_are_queried_by_name(run: Path) -> None:
    assert one(Dataset([run]), "select count(*) from cells where factors->>'batch' = '16'") == 2


def test_a_trial_without_an_outcome_is_not_there(run: Path) -> None:
    RunPaths(run).trial(CELLS[0].key, TrialName(3)).outcome.unlink()
    dataset = Dataset([run])
    assert len(dataset.trials) == 11
    assert one(dataset, "select count(distinct (cell_key, trial)) from windows") == 11


def test_a_torn_last_line_costs_only_itself(run: Path) -> None:
    events = RunPaths(run).trial(CELLS[0].key, TrialName(1)).events(0)
    whole = events.read_text(encoding="utf-8")
    events.write_text(whole + '{"event": "window", "phase": "meas', encoding="utf-8")
    seal_all(run)
    assert one(Dataset([run]), "select count(*) from windows") == 12 * 13


def test_a_damaged_line_of_events_costs_that_line_and_is_named(run: Path) -> None:
    events = RunPaths(run).trial(CELLS[0].key, TrialName(1)).events(0)
    lines = events.read_text(encoding="utf-8").splitlines()
    lines[8] = lines[8].replace('"steps": 1', '"steps": "one"')
    events.write_text("\n".join(lines) + "\n", encoding="utf-8")
    seal_all(run)
    results = analyse(Dataset([run]))
    assert results.warnings[0] == (
        f"{events}:9 is damaged: steps is not a whole number. It is left out."
    )
    assert sum(len(cell.trials) for cell in results.cells) == 12
    assert Dataset([run]).damaged_lines("from windows") == results.warnings[:1]
    assert Dataset([run]).damaged_lines("from trials") == ()


@pytest.mark.parametrize(("outcome", "named"), [("ok", 1), ("failed", 0)])
def test_only_a_rank_that_was_killed_may_leave_its_last_line_unfinished(
    tmp_path: Path, outcome: str, named: int
) -> None:
    run = write_run(tmp_path, [replace(CELLS[0], outcomes={1: outcome})])
    events = RunPaths(run).trial(CELLS[0].key, TrialName(1)).events(0)
    with events.open("a", encoding="utf-8") as file:
        file.write('{"event": "window", "phase": "meas')
    seal_all(run)
    told = [one for one in analyse(Dataset([run])).warnings if "damaged" in one]
    assert len(told) == named


def test_a_damaged_line_of_the_log_is_named_where_the_run_is_shown(run: Path) -> None:
    log = RunPaths(run).log
    log.write_text('{"what": "started"}\n\0\0\n', encoding="utf-8")
    assert analyse(Dataset([run])).warnings[0].startswith(f"{log}:2 is damaged: ")


def test_a_loss_that_is_not_a_number_is_kept(run: Path) -> None:
    events = RunPaths(run).trial(CELLS[0].key, TrialName(1)).events(0)
    with events.open("a", encoding="utf-8") as file:
        file.write('{"event": "values", "step": 99, "values": {"loss": NaN}}\n')
    seal_all(run)
    assert one(Dataset([run]), "select isnan(value) from values where step = 99") is True


def test_only_measured_trials_are_given_unless_others_are_asked_for(tmp_path: Path) -> None:
    run = write_run(tmp_path, CELLS, Recording(origin="simulated"))
    assert Dataset([run]).trials == ()
    assert Dataset([run]).left_out == 12
    assert one(Dataset([run]), "select count(*) from windows") == 0
    assert len(Dataset([run], origins=("simulated",)).trials) == 12


def test_many_runs_are_read_together(tmp_path: Path) -> None:
    runs = [write_run(tmp_path, CELLS, Recording(name=name)) for name in ("monday", "tuesday")]
    rows = Dataset(runs).sql("select run, count(*) from trials group by run order by run").rows
    assert rows == (("monday", 12), ("tuesday", 12))


def test_two_runs_of_one_name_are_refused(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / place, CELLS) for place in ("here", "there")]
    with pytest.raises(RunError, match="could not be told apart"):
        Dataset(runs)


def test_a_path_with_quotes_and_stars_is_read(tmp_path: Path) -> None:
    run = write_run(tmp_path / "it's [odd] *", CELLS)
    assert one(Dataset([run]), "select count(*) from windows") == 12 * 13


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run"):
        Dataset([tmp_path])


@pytest.mark.parametrize(
    ("version", "said"), [(1, "format 1, and this bakeoff reads format"), (99, "Update bakeoff")]
)
def test_a_run_of_another_version_is_refused(run: Path, version: int, said: str) -> None:
    plan = RunPaths(run).plan
    raw = json.loads(plan.read_text(encoding="utf-8"))
    plan.write_text(json.dumps({**raw, "version": version}), encoding="utf-8")
    with pytest.raises(RunError, match=said):
        Dataset([run])


def test_a_damaged_file_that_all_depends_on_is_named(run: Path) -> None:
    RunPaths(run).plan.write_text("{", encoding="utf-8")
    with pytest.raises(RunError, match=r"plan\.json is damaged"):
        Dataset([run])


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"outcome": "ok"}'])
def test_a_damaged_outcome_hides_no_other_trial_and_names_its_cure(run: Path, content: str) -> None:
    outcome = RunPaths(run).trial(CELLS[0].key, TrialName(1)).outcome
    outcome.write_text(content, encoding="utf-8")
    dataset = Dataset([run])
    assert len(dataset.trials) == 11
    (warning,) = dataset.warnings
    assert warning.startswith(f"{outcome} is damaged: ")
    assert f"`bakeoff resume {run}` sets it aside and runs it again" in warning
    assert analyse(dataset).warnings[0] == warning


def test_of_several_runs_one_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    runs = [write_run(tmp_path, CELLS, Recording(name=name)) for name in ("monday", "tuesday")]
    RunPaths(runs[0]).plan.unlink()
    dataset = Dataset(runs)
    assert [run.info.name for run in dataset.runs] == ["tuesday"]
    assert "monday is not a run: it has no plan.json" in dataset.warnings[0]


@pytest.mark.parametrize(
    "query", ["drop view windows", "select 1; select 2", "copy trials to 'x.csv'", "set threads=2"]
)
def test_queries_change_nothing(run: Path, query: str) -> None:
    with pytest.raises(UsageError, match="changes nothing"):
        Dataset([run]).sql(query)


def test_a_wrong_query_is_answered_with_the_tables(run: Path) -> None:
    with pytest.raises(UsageError) as told:
        Dataset([run]).sql("select step_time from window")
    assert "windows" in str(told.value)
    assert "start_ns, end_ns" in str(told.value)


def test_ranks_speak_for_themselves(tmp_path: Path) -> None:
    cell = RecordedCell(factors={"ranks_per_node": 2}, behaviour=SHORT)
    dataset = Dataset([write_run(tmp_path, [cell])])
    rows = dataset.sql("select rank, count(*) from windows group by rank order by rank").rows
    assert rows == ((0, 78), (1, 78))


def test_a_run_that_lacks_the_folder_of_its_trials_is_shown_with_that(tmp_path: Path) -> None:
    run = write_run(tmp_path, CELLS)
    shutil.rmtree(run / "cells")
    data = Dataset([run])
    assert not data.trials
    assert any("cells: this folder is missing" in text for text in data.warnings)
