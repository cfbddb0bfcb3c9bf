"""These tests run `bakeoff compare` and `bakeoff sql` on recorded runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from harness.analysis import run_comparison
from harness.cli.verbs.compare import METRICS, command
from harness.cli.verbs.show import command as show
from harness.cli.verbs.sql import command as sql
from harness.errors import BakeoffError, RunError, UsageError
from tests.runs import Behaviour, RecordedCell, Recording, write_run

QUIET = Behaviour(trial_noise=0.004, window_noise=0.004, windows=20)
TORCH = RecordedCell(behaviour=QUIET)
JAX = RecordedCell(framework="jax", behaviour=QUIET)
SLOW = replace(JAX, behaviour=replace(QUIET, step_s=0.023))


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return write_run(tmp_path, [TORCH, JAX], Recording(name="before", seed=1, block_noise=0.002))


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


def test_a_slower_cell_fails_the_gate(before: Path, tmp_path: Path) -> None:
    result = compare(before, later(tmp_path, TORCH, SLOW), "--fail-if", "slower > 3 %")
    assert result.return_value == 1
    assert "FAIL  tinycnn · jax: 0.87" in result.output
    assert "slower" in result.output


def test_without_a_gate_a_slower_cell_is_only_told(before: Path, tmp_path: Path) -> None:
    result = compare(before, later(tmp_path, TORCH, SLOW))
    assert result.return_value == 0
    assert "slower" in result.output


def test_an_unchanged_run_passes(before: Path, tmp_path: Path) -> None:
    result = compare(before, later(tmp_path, TORCH, JAX), "--fail-if", "slower > 3 %")
    assert result.return_value == 0
    assert result.output.count(": same") == 2


def test_a_loss_within_the_limit_passes(before: Path, tmp_path: Path) -> None:
    result = compare(before, later(tmp_path, TORCH, SLOW), "--fail-if", "slower > 20 %")
    assert result.return_value == 0


def test_more_time_is_worse(before: Path, tmp_path: Path) -> None:
    result = compare(
        before, later(tmp_path, TORCH, SLOW), "--metric", "p50", "--fail-if", "slower > 3 %"
    )
    assert result.return_value == 1


def test_it_says_what_else_differs_and_that_the_evidence_is_weaker(
    before: Path, tmp_path: Path
) -> None:
    after = later(tmp_path, TORCH, JAX, versions={"torch": "2.14.0"})
    output = compare(before, after).output
    assert "environment.torch-cpu.versions.torch: 2.13.0 → 2.14.0" in output
    assert "weaker evidence" in output


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
    with pytest.raises(RunError, match="does not differ from itself"):
        compare(before, before)


def test_a_gate_that_is_not_understood_is_refused(before: Path) -> None:
    with pytest.raises(UsageError, match="slower > 3 %"):
        compare(before, before, "--fail-if", "worse by 3")


def test_other_programs_can_read_the_answer(before: Path, tmp_path: Path) -> None:
    after = later(tmp_path, TORCH, SLOW)
    junit, summary = tmp_path / "junit.xml", tmp_path / "summary.md"
    options = ("--fail-if", "slower > 3 %", "--junit", junit, "--github-summary", summary, "--json")
    told = json.loads(compare(before, after, *options).output)
    assert [cell["answer"] for cell in told["cells"]] == ["same", "slower"]
    assert [cell["failed"] for cell in told["cells"]] == [False, True]
    suite = ElementTree.parse(junit).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert "| ❌ | tinycnn · jax | 0.87" in summary.read_text(encoding="utf-8")


def test_every_metric_is_offered() -> None:
    assert tuple(run_comparison.METRICS) == METRICS


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
    enough = write_run(tmp_path, cells, Recording(name="enough", trials=13, block_noise=0.002))
    told = pairs(enough)
    assert "torch: faster than keras, 1.15 × [1.1" in told
    assert "jax: faster than keras" in told or "keras: slower than jax" in told
