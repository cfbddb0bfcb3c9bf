from __future__ import annotations

import compileall
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.analysis.analyse import analyse
from harness.cli.verbs.list import command as list_command
from harness.cli.verbs.show import command as show_command
from harness.cli.verbs.status import command as status_command
from harness.cli.verbs.watch import command as watch_command
from harness.errors import FullDisk, RunError
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.run.progress import Progress
from harness.run.session import prepare_jobs, resume, start
from harness.run.trials.trial import run_trial
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName
from harness.store.outcome import Ended, Outcome, read_outcome, write_outcome
from harness.store.run_directory import opening, session_log
from harness.store.run_directory.due import read_due
from harness.store.run_directory.identity import identity
from harness.study.study import load_study
from harness.worker.place import TOKEN

ANSWERED = """title = "A model of a cluster, whose times are the same on any machine"
[matrix]
workload = "alexnet"
framework = "torch"
strategy = "ddp"
nodes = [1, 4]
[measure]
stop = "answered"
warmup = "3 steps"
until = "5 steps"
reference = { nodes = 1 }
"""
STUDY = """title = "Null"
[matrix]
workload = ["nothing", "tinycnn"]
framework = "null"
[measure]
trials = 2
reruns = 1
warmup = "3 steps"
until = "20 ms"
tolerate = ["contended", "throttled", "stalled"]
"""


class Listener:
    """Remembers what a session says."""

    def __init__(self) -> None:
        self.ended: list[tuple[int, Outcome]] = []
        self.notes: list[str] = []
        self.progress: list[Progress] = []

    def progressed(self, progress: Progress) -> None:
        self.progress.append(progress)

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        self.ended.append((progress.done, outcome))

    def doing(self, text: str) -> None:
        pass

    def noted(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    return make_plan(load_study(study), load_platform())


@pytest.fixture
def listener() -> Listener:
    return Listener()


def begin(plan: Plan, root: Path, listener: Listener, **more):
    return start(plan, root=root, study_text=STUDY, observer=listener, **more)


def forget(paths: RunPaths, key: str, block: int) -> None:
    """Make a trial look as if a crash had cut it off."""
    paths.trial(key, TrialName(block)).outcome.unlink()


def test_trials_run_in_the_plans_order_and_are_numbered(plan, tmp_path, listener):
    result = begin(plan, tmp_path / "run", listener)
    assert (result.done, result.total, result.ok, result.failed) == (4, 4, 4, 0)
    assert [(one.cell_key, one.trial) for _, one in listener.ended] == [
        (key, str(TrialName(block))) for key, block in plan.order
    ]
    assert [done for done, _ in listener.ended] == [1, 2, 3, 4]
    for _, told in listener.ended:
        name = TrialName.parse(told.trial)
        assert name is not None
        assert read_outcome(RunPaths(tmp_path / "run").trial(told.cell_key, name)) == told
    assert [one.position for _, one in listener.ended] == [1, 2, 3, 4]
    assert {one.origin for _, one in listener.ended} == {"measured"}


def test_all_trials_of_a_cell_have_windows_of_one_size(plan, tmp_path, listener):
    begin(plan, tmp_path / "run", listener)
    paths = RunPaths(tmp_path / "run")
    for cell in plan.cells:
        first, second = (paths.trial(cell.key, TrialName(block)) for block in (1, 2))
        sizes = _window_sizes(first)
        assert json.loads(first.job.read_text())["window_steps"] is None
        assert json.loads(second.job.read_text())["window_steps"] == max(sizes)
        assert _window_sizes(second) == {max(sizes)}


def _window_sizes(trial) -> set[int]:
    events = map(json.loads, trial.events(0).read_text().splitlines())
    return {e["steps"] for e in events if e["event"] == "window" and e["phase"] == "measure"}


def test_a_run_keeps_what_it_was_made_from(plan, tmp_path, listener):
    begin(plan, tmp_path / "run", listener)
    paths = RunPaths(tmp_path / "run")
    assert paths.study.read_text() == STUDY
    assert json.loads(paths.plan.read_text())["order"] == [list(one) for one in plan.order]
    assert json.loads(paths.environment("null").read_text())["fingerprint"]
    assert json.loads(paths.provenance.read_text())["software"]["python"]
    assert not paths.agent_errors.exists()


def test_resuming_a_complete_run_starts_nothing(plan, tmp_path, listener):
    begin(plan, tmp_path / "run", listener)
    again = Listener()
    result = resume(tmp_path / "run", observer=again)
    assert (result.done, result.total, result.interrupted) == (4, 4, 0)
    assert again.ended == []


def test_only_the_trial_that_was_cut_off_is_run_again(plan, tmp_path, listener):
    begin(plan, tmp_path / "run", listener)
    paths = RunPaths(tmp_path / "run")
    key, block = plan.order[1]
    forget(paths, key, block)
    again = Listener()
    assert resume(tmp_path / "run", observer=again).done == 4
    assert [(one.cell_key, one.trial) for _, one in again.ended] == [(key, f"trial-{block}")]
    assert len(list(paths.interrupted.iterdir())) == 1


def test_changed_code_is_refused_unless_mixing_is_wanted_and_then_marked(plan, tmp_path, listener):
    begin(plan, tmp_path / "run", listener)
    paths = RunPaths(tmp_path / "run")
    key, block = plan.order[-1]
    forget(paths, key, block)
    identity = json.loads(paths.run.read_text())
    identity["first"][key] = identity["accepted"][key] = "of-other-code"
    paths.run.write_text(json.dumps(identity))
    with pytest.raises(RunError, match=f"{plan.cell(key).label}(.|\n)*--mix"):
        resume(tmp_path / "run", observer=listener)
    assert resume(tmp_path / "run", mix=True, observer=listener).done == 4
    outcome = json.loads(paths.trial(key, TrialName(block)).outcome.read_text())
    assert outcome["mixed"] is True
    job = paths.trial(key, TrialName(block)).job.read_text()
    assert (tmp_path / "run" / "payload.2" / "harness" / "worker" / "loop.py").is_file()
    assert json.loads(job)["trial"] == f"trial-{block}"


def test_a_rejected_trial_is_run_again_within_the_budget(plan, tmp_path, listener):
    first = plan.order[0][0]

    def rejects(trial) -> str | None:
        return "contended: a neighbour" if first in str(trial.root) else None

    result = begin(plan, tmp_path / "run", listener, rejects=rejects)
    assert result.done == 4
    trials = sorted(one.trial for _, one in listener.ended if one.cell_key == first)
    assert trials == ["trial-1", "trial-1.2", "trial-2", "trial-2.2"]
    assert "contended: a neighbour" in listener.notes[0]


def test_a_compiling_cell_first_runs_once_from_empty_caches(plan, tmp_path, listener):
    cells = tuple(
        replace(cell, factors={**cell.factors, "compile": cell.workload == "tinycnn"})
        for cell in plan.cells
    )
    result = begin(replace(plan, cells=cells), tmp_path / "run", listener)
    assert (result.done, result.total) == (4, 4)
    assert [one.trial for _, one in listener.ended][:1] == ["cold"]
    (cold,) = [one for _, one in listener.ended if one.trial == "cold"]
    job = json.loads(RunPaths(tmp_path / "run").cold(cold.cell_key).job.read_text())
    assert (job["workload"], job["until"]) == ("tinycnn", {"steps": 1, "seconds": None})


def test_nothing_is_made_when_an_interpreter_is_missing(plan, tmp_path, listener):
    cells = tuple(replace(cell, environment="null@2.1") for cell in plan.cells)
    with pytest.raises(Exception, match=r"null@2\.1"):
        begin(replace(plan, cells=cells), tmp_path / "run", listener)
    assert not (tmp_path / "run").exists()


def repeated(tmp_path: Path, *more: str) -> Plan:
    study = tmp_path / "repeated.toml"
    study.write_text(STUDY)
    overrides = ('workload="nothing"', *more)
    return make_plan(
        load_study(study, overrides=[f"matrix.{overrides[0]}", *overrides[1:]]), load_platform()
    )


def logged(root: Path, what: str) -> list[dict]:
    lines = map(json.loads, RunPaths(root).log.read_text().splitlines())
    return [line for line in lines if line["what"] == what]


def test_blocks_are_repeated_until_intervals_are_narrow_and_resume_decides_the_same(
    tmp_path, listener
):
    plan = repeated(tmp_path, 'measure.until_interval="10000 %"', "measure.trials_at_most=20")
    assert plan.measure.looks == (8, 12, 18, 20)
    result = begin(plan, tmp_path / "run", listener)
    assert (result.done, result.total, result.interrupted) == (8, 8, 0)
    assert "every interval is within" in listener.notes[-1]
    assert [one["block"] for one in logged(tmp_path / "run", "enough")] == [8]
    again = Listener()
    result = resume(tmp_path / "run", observer=again)
    assert (result.done, result.total, again.ended) == (8, 8, [])
    assert again.notes == listener.notes
    (run,) = analyse(Dataset([tmp_path / "run"])).runs
    assert run.repetition is not None
    assert (run.repetition.stopped, run.repetition.narrow, run.repetition.blocks) == (True, True, 8)


def test_blocks_are_repeated_until_the_comparison_is_answered_and_resume_decides_the_same(
    tmp_path, listener
):
    study = tmp_path / "answered.toml"
    study.write_text(ANSWERED)
    plan = make_plan(load_study(study), load_platform("simulated-cluster"))
    assert plan.measure.looks == tuple(range(4, 31))
    result = begin(plan, tmp_path / "run", listener)
    assert (result.done, result.total) == (8, 8)
    assert "every comparison is answered after 4 blocks" in listener.notes[-1]
    again = Listener()
    assert resume(tmp_path / "run", observer=again).done == 8
    assert again.ended == []


def test_a_run_that_was_repeated_often_enough_is_listed_as_complete(
    tmp_path, listener, monkeypatch
):
    plan = repeated(tmp_path, 'measure.until_interval="10000 %"', "measure.trials_at_most=20")
    begin(plan, tmp_path / "runs" / "early", listener)
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(list_command, ["runs", "--json"])
    (row,) = json.loads(told.output)
    assert (row["name"], row["done"], row["planned"]) == ("early", 8, 8)
    assert len(json.loads(RunPaths(tmp_path / "runs" / "early").plan.read_text())["order"]) == 20


class Comparing(Listener):
    """Holds what the run's files say is due to what the session says, after each trial."""

    def trial_ended(self, progress: Progress, ended: Ended) -> None:
        super().trial_ended(progress, ended)
        count = read_due(RunPaths(progress.run)).count()
        assert (count.total, count.total - count.left) == (progress.total, progress.done)


def rows(root: Path) -> tuple[dict, dict, dict]:
    """Ask the three verbs that say how far a run is."""
    listed = CliRunner().invoke(list_command, ["runs", "--json"])
    told = CliRunner().invoke(status_command, [str(root), "--json"])
    watched = CliRunner().invoke(watch_command, [str(root), "--json"])
    (row,) = json.loads(listed.output)
    return row, json.loads(told.output), json.loads(watched.output)["trial"]


@pytest.mark.parametrize("case", ["repeated", "run again", "given up"])
def test_every_verb_counts_the_trials_as_the_session_does(case, plan, tmp_path, monkeypatch):
    root, listener = tmp_path / "runs" / "one", Comparing()
    monkeypatch.chdir(tmp_path)
    if case == "repeated":
        more = ('measure.until_interval="10000 %"', "measure.trials_at_most=20")
        result = begin(repeated(tmp_path, *more), root, listener, rejects=lambda _: "contended")
    elif case == "run again":
        result = begin(plan, root, listener, rejects=lambda _: "contended")
    else:
        monkeypatch.setattr("harness.run.worklist.run_trial", fail_some)
        result = begin(plan, root, listener)
    row, told, watched = rows(root)
    assert (row["done"], row["left"], row["planned"]) == (result.done, 0, result.total)
    assert (told["left"], told["total"]) == (0, result.total)
    assert (watched["done"], watched["total"]) == (result.total, result.total)
    assert result.skipped == (1 if case == "given up" else 0)


def fail_some(bench, one, name, **more) -> Outcome:
    """Carry a trial out; one workload is unsupported."""
    outcome = run_trial(bench, one, name, **more)
    if one.cell.workload == "tinycnn":
        outcome = replace(outcome, ended=Ended.UNSUPPORTED)
        write_outcome(outcome, bench.paths.trial(one.cell.key, name))
    return outcome


def test_a_killed_sessions_unfinished_trials_are_due_in_every_verb(plan, tmp_path, monkeypatch):
    root = tmp_path / "runs" / "one"
    monkeypatch.chdir(tmp_path)
    begin(plan, root, Listener())
    forget(RunPaths(root), *plan.order[1])
    session_log.log(
        RunPaths(root), "run again", cell=plan.order[-1][0], trial="trial-2", why="noise"
    )
    row, told, watched = rows(root)
    assert (row["done"], row["left"]) == (2, 2)
    assert (told["left"], told["at_work"]) == (2, None)
    assert (watched["done"], watched["total"]) == (2, 4)


def test_nobody_is_said_to_be_missing_beside_a_live_session(plan, tmp_path, monkeypatch):
    root = tmp_path / "runs" / "one"
    monkeypatch.chdir(tmp_path)
    begin(plan, root, Listener())
    forget(RunPaths(root), *plan.order[1])
    asked = CliRunner().invoke(status_command, [str(root)]).output
    assert "Nobody is at work on it. To go on: bakeoff resume" in asked
    with opening.locked(RunPaths(root)):
        asked = CliRunner().invoke(status_command, [str(root)]).output
        assert f"At work on it: the bakeoff process {os.getpid()} on " in asked
        assert "Nobody" not in asked
        shown = CliRunner().invoke(show_command, [str(root)])
        assert f"at work on it: the bakeoff process {os.getpid()}" in shown.stderr
        assert "What follows is not final." in shown.stderr
        assert f"process {os.getpid()} on" in rows(root)[0]["at_work"]
        with (
            pytest.raises(RunError, match=rf"the bakeoff process {os.getpid()} on .* is working"),
            opening.locked(RunPaths(root)),
        ):
            pass
    assert rows(root)[0]["at_work"] is None


def test_a_budget_that_ends_first_is_named_and_kept_on_resume(tmp_path, listener):
    more = ('measure.until_interval="0.001 %"', "measure.trials_at_most=20", 'measure.budget="1 s"')
    plan = repeated(tmp_path, *more)
    result = begin(
        replace(plan, measure=replace(plan.measure, budget_s=1e-3)), tmp_path / "run", listener
    )
    assert (result.done, result.total) == (2, 2)
    assert "the budget ended after 2 blocks" in listener.notes[-1]
    again = Listener()
    assert resume(tmp_path / "run", observer=again).total == 2
    assert again.notes == listener.notes
    warnings = analyse(Dataset([tmp_path / "run"])).warnings
    assert any("the budget ended after 2 blocks" in warning for warning in warnings)
    assert not any("not complete" in warning for warning in warnings)


def test_a_host_killed_before_it_ran_a_rejected_trial_again_does_so_on_resume(
    plan, tmp_path, listener
):
    key, _ = plan.order[-1]

    def rejects(trial) -> str | None:
        return "contended: a neighbour" if trial.root.name == "trial-2" else None

    begin(plan, tmp_path / "run", listener)  # nothing was judged: as if killed right after it ended
    again = Listener()
    assert resume(tmp_path / "run", observer=again, rejects=rejects).done == 4
    assert [(one.cell_key, one.trial) for _, one in again.ended] == [(key, "trial-2.2")]
    assert resume(tmp_path / "run", observer=Listener(), rejects=rejects).done == 4


def test_a_trial_whose_outcome_is_damaged_is_set_aside_and_run_again(plan, tmp_path, listener):
    begin(plan, tmp_path / "run", listener)
    key, block = plan.order[0]
    RunPaths(tmp_path / "run").trial(key, TrialName(block)).outcome.write_text('{"outcome')
    again = Listener()
    result = resume(tmp_path / "run", observer=again)
    assert (result.done, result.total, len(again.ended)) == (4, 4, 1)
    (line,) = logged(tmp_path / "run", "cleaned up")
    assert [name.rpartition(".")[0] for name in line["set_aside"]] == [f"{key}.trial-{block}"]


def test_leftovers_of_a_renamed_run_are_ended_and_those_of_a_copys_original_are_not(
    plan, tmp_path, listener
):
    begin(plan, tmp_path / "run", listener)
    token = f"{identity(RunPaths(tmp_path / 'run')).id}/{plan.order[0][0]}/trial-1"
    copy = Path(shutil.copytree(tmp_path / "run", tmp_path / "copy"))
    forget(RunPaths(copy), *plan.order[0])
    renamed = (tmp_path / "run").rename(tmp_path / "renamed")
    argv = [sys.executable, "-S", "-c", "import signal; signal.pause()"]
    with subprocess.Popen(argv, env={**os.environ, TOKEN: token}) as leftover:
        resume(copy, observer=Listener())
        assert leftover.poll() is None
        resume(renamed, observer=Listener())
        assert leftover.wait() == -signal.SIGKILL
    (line,) = logged(copy, "claimed")
    assert line["copy_of"] == token.partition("/")[0]


def test_a_folder_that_claims_another_runs_id_ends_nothing_of_that_run(plan, tmp_path, listener):
    begin(plan, tmp_path / "run", listener)
    token = f"{identity(RunPaths(tmp_path / 'run')).id}/{plan.order[0][0]}/trial-1"
    sent = RunPaths(shutil.copytree(tmp_path / "run", tmp_path / "sent"))
    raw = sent.files.read_object(sent.run)
    sent.files.write_json(sent.run, {**raw, "directory": sent.root.stat().st_ino, "born_ns": None})
    argv = [sys.executable, "-S", "-c", "import signal; signal.pause()"]
    with subprocess.Popen(argv, env={**os.environ, TOKEN: token}) as other:
        resume(sent.root, observer=Listener())
        assert other.poll() is None
        other.kill()


def test_a_full_disk_is_answered_with_what_goes_on_then(plan, tmp_path, listener, monkeypatch):
    def full(*_: object, **__: object) -> Outcome:
        raise FullDisk("the disk is full.")

    monkeypatch.setattr("harness.run.session.survey", full)
    with pytest.raises(FullDisk, match=r"Free some space, then try again\.$"):
        begin(plan, tmp_path / "run", listener)
    monkeypatch.undo()
    monkeypatch.setattr("harness.run.worklist.run_trial", full)
    with pytest.raises(FullDisk) as told:
        begin(plan, tmp_path / "run", listener)
    assert str(told.value).endswith(f"then go on with `bakeoff resume {tmp_path / 'run'}`.")


def byte_code(root: Path) -> list[Path]:
    return [*root.rglob("*.pyc")]


def test_ranks_leave_no_byte_code_and_none_that_lies_there_is_imported(plan, tmp_path, listener):
    begin(plan, tmp_path / "run", listener)
    payload = RunPaths(tmp_path / "run").payload
    assert byte_code(payload) == []
    # Written by an earlier version, and cut short as the disk was full.
    compileall.compile_dir(payload, quiet=1)
    for one in byte_code(payload):
        one.write_bytes(one.read_bytes()[:30])
    forget(RunPaths(tmp_path / "run"), *plan.order[0])
    assert resume(tmp_path / "run", observer=Listener()).ok == 4
    assert byte_code(payload) == []


def ending(monkeypatch, ended: Ended, times: int) -> None:
    """Make the first trials of one workload end like this."""
    left = [ended] * times

    def run(bench, one, name, **more) -> Outcome:
        outcome = run_trial(bench, one, name, **more)
        if one.cell.workload == "tinycnn" and isinstance(name, TrialName) and left:
            outcome = replace(outcome, ended=left.pop(), reason="for this test")
            write_outcome(outcome, bench.paths.trial(one.cell.key, name))
        return outcome

    monkeypatch.setattr("harness.run.worklist.run_trial", run)


def test_a_cell_whose_nodes_were_lost_is_left_and_the_next_session_completes_it(
    plan, tmp_path, listener, monkeypatch
):
    ending(monkeypatch, Ended.NODE_LOST, 2)
    result = begin(plan, tmp_path / "run", listener)
    assert (result.done, result.ok, result.lost, result.skipped) == (2, 2, 2, 0)
    again = resume(tmp_path / "run", observer=Listener())
    assert (again.done, again.ok, again.lost) == (4, 4, 0)


def test_what_failed_is_run_again_only_when_that_is_asked_for(
    plan, tmp_path, listener, monkeypatch
):
    ending(monkeypatch, Ended.FAILED, 2)
    result = begin(plan, tmp_path / "run", listener)
    assert (result.done, result.ok, result.failed) == (4, 2, 2)
    assert resume(tmp_path / "run", observer=Listener()).ok == 2
    retried = Listener()
    assert resume(tmp_path / "run", retry_failed=True, observer=retried).ok == 4
    assert sorted(one.trial for _, one in retried.ended) == ["trial-1.2", "trial-2.2"]
    assert read_due(RunPaths(tmp_path / "run")).count().left == 0


def test_a_cell_that_was_given_up_is_tried_again_on_request_in_a_queues_job_too(
    plan, tmp_path, listener, monkeypatch
):
    ending(monkeypatch, Ended.UNSUPPORTED, 1)
    assert begin(plan, tmp_path / "run", listener).skipped == 1
    prepare_jobs(tmp_path / "run", retry_failed=True)
    assert read_due(RunPaths(tmp_path / "run")).count().left == 2
    result = resume(tmp_path / "run", observer=Listener())
    assert (result.ok, result.skipped) == (4, 0)
