"""These tests run `bakeoff compare` and `bakeoff sql` on recorded runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from harness.analysis.between_runs import metrics
from harness.cli.verbs.compare import METRICS, command
from harness.cli.verbs.show import command as show
from harness.cli.verbs.sql import command as sql
from harness.errors import BakeoffError, RunError, UsageError
from tests.runs import Behaviour, RecordedCell, Recording, write_run

QUIET = Behaviour(trial_noise=0.004, window_noise=0.004, windows=10)
TORCH = RecordedCell(behaviour=QUIET)
JAX = RecordedCell(framework="jax", behaviour=QUIET)
SLOW = replace(JAX, behaviour=replace(QUIET, step_s=0.023))


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return write_run(tmp_path, [TORCH, JAX], Recording(name="before", seed=1, block_noise=0.002))


@pytest.fixture
def repeated(before: Path, tmp_path: Path) -> Path:
    """Write five more runs of what the first measured, beside it: days that differ by 0.4 %."""
    for day, seed in enumerate((11, 12, 13, 14, 15)):
        step_s = 0.02 * (1 + 0.002 * (-1) ** day)
        slower = replace(QUIET, step_s=step_s)
        cells = [replace(one, behaviour=slower) for one in (TORCH, JAX)]
        write_run(tmp_path, cells, Recording(name=f"day-{day}", seed=seed, block_noise=0.002))
    return before


def later(folder: Path, *cells: RecordedCell, **told: object) -> Path:
    recording = Recording(**{"name": "after", "seed": 2, "block_noise": 0.002, **told})  # type: ignore[arg-type]
    return write_run(folder, cells, recording)


def compare(*arguments: object) -> Result:
    text = [str(argument) for argument in arguments]
    result = CliRunner().invoke(command, text, standalone_mode=False)
    if isinstance(result.exception, BakeoffError):
        raise result.exception
    assert result.exception is None, result.exception
    return result


def test_a_slower_cell_fails_the_gate(repeated: Path, tmp_path: Path) -> None:
    result = compare(repeated, later(tmp_path, TORCH, SLOW), "--fail-if", "slower > 3 %")
    assert result.return_value == 1
    assert "FAIL  tinycnn · jax: 0.87" in result.output
    assert "slower" in result.output


def test_a_folder_of_several_runs_is_no_side(before: Path, tmp_path: Path) -> None:
    after = later(tmp_path, TORCH, SLOW)
    with pytest.raises(UsageError, match="holds several runs; name one of them: after, before"):
        compare(tmp_path, after)


def test_without_a_gate_a_slower_cell_is_only_told(repeated: Path, tmp_path: Path) -> None:
    result = compare(repeated, later(tmp_path, TORCH, SLOW))
    assert result.return_value == 0
    assert "slower" in result.output


def test_an_unchanged_run_passes(repeated: Path, tmp_path: Path) -> None:
    result = compare(repeated, later(tmp_path, TORCH, JAX), "--fail-if", "slower > 3 %")
    assert result.return_value == 0
    assert "slower" not in result.output.replace("slower > 3 %", "")
    assert "By 5 repeated runs" in result.output


def test_without_a_repeated_run_no_change_is_told_and_the_gate_says_that_it_is_none(
    before: Path, tmp_path: Path
) -> None:
    after = later(tmp_path, TORCH, SLOW)
    told = compare(before, after)
    assert told.return_value == 0
    assert told.output.count("cannot tell") == 2
    assert "the second session was slower, but it is not known" in told.output
    assert "bakeoff compare --now before after" in told.output
    junit = tmp_path / "junit.xml"
    gate = compare(before, after, "--fail-if", "slower > 3 %", "--junit", junit)
    assert gate.return_value == 2
    assert "cannot be judged, because it is not known" in gate.output
    assert ElementTree.parse(junit).getroot()[0].get("skipped") == "2"


def test_a_day_that_is_slower_than_the_limit_is_no_change(repeated: Path, tmp_path: Path) -> None:
    day = replace(QUIET, step_s=0.0203)
    after = later(tmp_path, replace(TORCH, behaviour=day), replace(JAX, behaviour=day))
    result = compare(repeated, after, "--fail-if", "slower > 1 %")
    assert result.return_value == 0
    assert result.output.count("cannot tell") + result.output.count(": same") == 2


def test_repeated_runs_are_named_where_they_lie_elsewhere(
    before: Path, repeated: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for run in tmp_path.glob("day-*"):
        run.rename(elsewhere / run.name)
    after = later(tmp_path, TORCH, SLOW)
    assert "session was slower, but" in compare(before, after).output
    told = json.loads(compare(before, after, "--repeats", elsewhere, "--json").output)
    assert [one["answer"] for one in told["cells"]][1] == "slower"
    assert [one["sessions"] for one in told["cells"]] == [5, 5]


@pytest.mark.parametrize("what", ["a link", "a file", "gone"])
def test_a_run_beside_that_cannot_be_read_repeats_nothing(
    repeated: Path, tmp_path: Path, what: str
) -> None:
    bad = tmp_path / "day-0" / "cells"
    bad.rename(tmp_path / "day-0" / "put aside")
    if what == "a link":
        bad.symlink_to("put aside")
    elif what == "a file":
        bad.write_text("")
    told = json.loads(compare(repeated, later(tmp_path, TORCH, SLOW), "--json").output)
    assert [one["sessions"] for one in told["cells"]] == [4, 4]


def test_a_run_of_another_machine_repeats_nothing(before: Path, tmp_path: Path) -> None:
    other = {"name": "desk", "title": "A desk", "hardware": {"cpus": 2}}
    for seed in (11, 12, 13):
        recording = Recording(name=f"desk-{seed}", seed=seed, platform=other)
        write_run(tmp_path, [TORCH, JAX], recording)
    assert (
        "no cell is called faster or slower" in compare(before, later(tmp_path, TORCH, SLOW)).output
    )


def test_a_session_that_lost_its_slow_trials_is_not_called_faster(
    repeated: Path, tmp_path: Path
) -> None:
    fast = replace(JAX, behaviour=replace(QUIET, step_s=0.017))
    timed_out = replace(fast, outcomes={2: "timed-out", 3: "timed-out", 5: "timed-out"})
    whole = compare(repeated, later(tmp_path / "whole", TORCH, fast)).output
    assert re.search(r"jax: 1\.1\d.*: faster", whole)
    lost = compare(repeated, later(tmp_path / "lost", TORCH, timed_out)).output
    assert re.search(r"jax: 1\.1\d.*: cannot tell", lost)
    slow = replace(SLOW, outcomes={2: "timed-out", 3: "timed-out", 5: "timed-out"})
    bound = compare(repeated, later(tmp_path / "slow", TORCH, slow)).output
    assert "slower, it lost trials in 0 of 6 blocks of the first run and in 3 of 6" in bound


def test_a_loss_within_the_limit_passes(repeated: Path, tmp_path: Path) -> None:
    result = compare(repeated, later(tmp_path, TORCH, SLOW), "--fail-if", "slower > 20 %")
    assert result.return_value == 0


def test_more_time_is_worse(repeated: Path, tmp_path: Path) -> None:
    result = compare(
        repeated, later(tmp_path, TORCH, SLOW), "--metric", "p50", "--fail-if", "slower > 3 %"
    )
    assert result.return_value == 1


def test_it_says_what_else_differs_and_that_they_were_not_measured_together(
    before: Path, tmp_path: Path
) -> None:
    after = later(tmp_path, TORCH, JAX, versions={"torch": "2.14.0"})
    output = compare(before, after).output
    assert "environment.torch-cpu.versions.torch: 2.13.0 → 2.14.0" in output
    assert "The two runs were not measured together" in output


def test_cells_of_one_run_only_are_named(before: Path, tmp_path: Path) -> None:
    other = replace(TORCH, factors={"batch": 64})
    output = compare(before, later(tmp_path, TORCH, other)).output
    assert "tinycnn · jax: only in the first run" in output
    assert "tinycnn · torch · batch=64: only in the second run" in output


def test_runs_without_a_common_cell_are_refused(before: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nothing to compare"):
        compare(before, later(tmp_path, replace(TORCH, factors={"batch": 64})))


def test_trials_that_measured_nothing_are_refused(before: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no figure in the second run"):
        compare(before, later(tmp_path, TORCH, JAX, origin="simulated"))


def test_a_cell_that_computes_something_else_is_refused(before: Path, tmp_path: Path) -> None:
    output = compare(before, later(tmp_path, TORCH, replace(JAX, gate="differs"))).output
    assert "tinycnn · jax: in the second run it computes something else" in output


def test_a_run_is_not_compared_with_itself(before: Path) -> None:
    with pytest.raises(UsageError, match="does not differ from itself"):
        compare(before, before)


def test_a_gate_that_is_not_understood_is_refused(before: Path) -> None:
    with pytest.raises(UsageError, match="slower > 3 %"):
        compare(before, before, "--fail-if", "worse by 3")


def test_other_programs_can_read_the_answer(repeated: Path, tmp_path: Path) -> None:
    after = later(tmp_path, TORCH, SLOW)
    junit, summary = tmp_path / "junit.xml", tmp_path / "summary.md"
    options = ("--fail-if", "slower > 3 %", "--junit", junit, "--github-summary", summary, "--json")
    told = json.loads(compare(repeated, after, *options).output)
    assert [cell["answer"] for cell in told["cells"]] == ["same", "slower"]
    assert [cell["failed"] for cell in told["cells"]] == [False, True]
    suite = ElementTree.parse(junit).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert "| ❌ | tinycnn · jax | 0.87" in summary.read_text(encoding="utf-8")


def test_every_metric_is_offered() -> None:
    assert tuple(metrics.METRICS) == METRICS


def ask(*arguments: object) -> str:
    result = CliRunner().invoke(sql, [str(one) for one in arguments], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.output


def test_sql_answers_in_aligned_columns(before: Path) -> None:
    output = ask(
        before,
        "select framework, count(*) as trials from trials join cells using (run, cell_key) "
        "group by 1 order by 1",
    )
    assert output == "framework  trials\njax             6\ntorch           6\n(2 rows)\n"


def test_sql_writes_six_digits_for_people_and_all_for_programs(before: Path) -> None:
    query = "select 15.686928613872267::double as rate, 1795801755261347801 as at_ns"
    assert "15.6869  1795801755261347801" in ask(before, query)
    assert "15.686928613872267" in ask(before, query, "--csv")


def test_sql_has_rates_with_their_intervals_ratios_and_answers(before: Path) -> None:
    query = "select * from cells order by rate desc"
    fast, slow = json.loads(ask(before, query, "--json"))
    assert fast["rate_low"] < fast["rate"] < fast["rate_high"]
    assert (fast["rate_unit"], fast["n"]) == ("images/s", 6)
    assert {fast["answer"], slow["answer"]} >= {"reference"}
    assert {fast["ratio"], slow["ratio"]} >= {1.0}
    query = "select counted, verdict, rate from trials where rate > 0 order by rate desc"
    told = json.loads(ask(before, query, "--json"))
    assert len(told) == 12
    assert {one["counted"] for one in told} == {True}
    assert min(t["rate"] for t in told) < slow["rate"] < fast["rate"] < told[0]["rate"]


def test_sql_answers_as_json_and_csv(before: Path) -> None:
    query = "select 1 as one, null as nothing"
    assert json.loads(ask(before, query, "--json")) == [{"one": 1, "nothing": None}]
    assert ask(before, query, "--csv") == "one,nothing\n1,\n"


def test_sql_says_that_nothing_was_found(before: Path) -> None:
    assert ask(before, "select run from trials where block > 99") == "run\n(0 rows)\n"


def test_a_junit_file_that_cannot_be_written_is_named(before: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="/dev/full: the disk is full"):
        compare(before, later(tmp_path, TORCH), "--junit", "/dev/full")
    assert Path("/dev/full").is_char_device()


def pairs(run: Path) -> str:
    result = CliRunner().invoke(show, [str(run), "--pairs"], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.output


def test_every_pair_is_compared_on_request_from_thirteen_blocks_on(tmp_path: Path) -> None:
    cells = [TORCH, JAX, replace(SLOW, framework="keras")]
    few = write_run(tmp_path, cells, Recording(name="few", trials=6))
    assert pairs(few).count("cannot tell: all pairs need 13 blocks, there are 6") == 3
    two = write_run(tmp_path, cells[1:], Recording(name="two", trials=6, block_noise=0.002))
    assert "jax: faster than keras" in pairs(two)  # one pair has one answer, here as anywhere
    enough = write_run(tmp_path, cells, Recording(name="enough", trials=13, block_noise=0.002))
    told = pairs(enough)
    assert "torch: faster than keras, 1.15 × [1.1" in told
    assert "jax: faster than keras" in told or "keras: slower than jax" in told
