"""These tests hold that nothing of a run directory that somebody sent is carried out unasked."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.analysis.analyse import analyse
from harness.cli.main import bakeoff
from harness.cli.verbs.list import command as list_command
from harness.errors import RunError
from harness.plan.allocations import Allocation
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import Platform, load_platform
from harness.platform.starting import Launcher
from harness.run import trust
from harness.run.progress import SessionResult
from harness.run.session import prepare_jobs, resume, start
from harness.run.trust import Trust
from harness.run.unattended import queue
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName
from harness.store.outcome import read_outcome
from harness.store.paths.birth import born_ns
from harness.store.run_code import digest_of
from harness.store.run_directory.identity import identity
from harness.study.study import load_study
from tests.outcomes import seal
from tests.run.test_session import STUDY, Listener, forget


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "study.toml").write_text(STUDY)
    return make_plan(load_study(tmp_path / "study.toml"), load_platform())


@pytest.fixture
def run(plan: Plan, tmp_path: Path) -> RunPaths:
    """Give a run with one trial left."""
    start(plan, root=tmp_path / "runs" / "one", study_text=STUDY, observer=Listener())
    paths = RunPaths(tmp_path / "runs" / "one")
    forget(paths, *plan.order[-1])
    return paths


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be somebody else, or on a node with another HOME: nothing is known of earlier runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))


def plant(paths: RunPaths, planted: Path) -> None:
    """Have the payload write a file as soon as a rank imports it."""
    loop = paths.payload / "harness" / "worker" / "loop.py"
    loop.write_text(loop.read_text() + f"\nopen({str(planted)!r}, 'w').close()\n")


def test_edited_code_is_refused_and_what_is_edited_is_named(run, tmp_path):
    plant(run, tmp_path / "planted")
    with pytest.raises(RunError, match=r"'harness/worker/loop\.py'(.|\n)*--trust-payload"):
        resume(run.root, observer=Listener())
    assert not (tmp_path / "planted").exists()


def test_a_resume_that_is_refused_moves_nothing(run, plan, elsewhere):
    key, block = plan.order[0]
    run.trial(key, TrialName(block)).outcome.write_text("{")
    with pytest.raises(RunError, match="--trust-plan"):
        resume(run.root, observer=Listener())
    assert run.trial(key, TrialName(block)).outcome.read_text() == "{"
    assert not run.interrupted.exists()


@pytest.mark.parametrize("name", ["torch.py", "json.cpython-311-x86_64-linux-gnu.so", "x/y.py"])
def test_a_module_that_is_added_is_refused(run, name):
    (run.payload / name).parent.mkdir(exist_ok=True)
    (run.payload / name).write_bytes(b"")
    with pytest.raises(RunError, match=name):
        resume(run.root, observer=Listener())


def test_code_that_is_trusted_runs_with_a_fingerprint_of_its_own_and_shows(
    run, plan, tmp_path, monkeypatch
):
    plant(run, tmp_path / "planted")
    assert resume(run.root, trust=Trust(payload=True), observer=Listener()).ok == 4
    assert (tmp_path / "planted").exists()
    key, block = plan.order[-1]
    last = read_outcome(run.trial(key, TrialName(block)))
    assert last.mixed
    assert last.fingerprint != read_outcome(run.trial(key, TrialName(1))).fingerprint
    warnings = analyse(Dataset([run.root])).warnings
    assert any("one: its payload was changed after it was made" in text for text in warnings)
    assert any("by --trust-payload" in text for text in warnings)
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(list_command, ["runs"]).output
    assert "one  its payload was changed after it was made" in told
    forget(run, key, block)
    again = Listener()
    assert resume(run.root, observer=again).ok == 4
    assert f"{run.root}: its payload was changed after it was made." in again.notes


def test_mixing_runs_this_installations_code_instead_of_what_was_edited(run, tmp_path):
    plant(run, tmp_path / "planted")
    assert resume(run.root, mix=True, observer=Listener()).ok == 4
    assert not (tmp_path / "planted").exists()
    assert identity(run).payload == "payload.2"


def test_jobs_that_are_to_mix_find_this_installations_code(run, tmp_path):
    plant(run, tmp_path / "planted")
    with pytest.raises(RunError, match="--mix"):
        prepare_jobs(run.root)
    prepare_jobs(run.root, mix=True)
    assert identity(run).payload == "payload.2"
    assert resume(run.root, observer=Listener()).ok == 4
    assert not (tmp_path / "planted").exists()


def test_a_run_archived_without_its_code_goes_on_with_this_installations(run):
    shutil.rmtree(run.payload)
    assert not any("was changed" in text for text in analyse(Dataset([run.root])).warnings)
    with pytest.raises(RunError, match=r"the run's code is not there(.|\n)*--mix"):
        resume(run.root, observer=Listener())
    assert resume(run.root, mix=True, observer=Listener()).ok == 4


def test_an_edited_plan_is_refused_with_what_it_would_carry_out(run):
    plan = json.loads(run.plan.read_text())
    plan["platform"]["environment"] = {"LONG": "x" * 10_000, "LD_PRELOAD": "/tmp/preloaded.so"}
    plan["platform"]["frameworks"] = {"null": {"interpreter": "/tmp/planted"}}
    run.plan.write_text(json.dumps(plan))
    told = r"environment.LD_PRELOAD = .*/tmp/preloaded(.|\n)*/tmp/planted(.|\n)*--trust-plan"
    with pytest.raises(RunError, match=told):
        resume(run.root, observer=Listener())


def test_somebody_elses_run_is_carried_out_only_on_trust(run, elsewhere):
    copy = Path(shutil.copytree(run.root, run.root.with_name("sent")))
    with pytest.raises(RunError, match="you did not make this run here"):
        resume(copy, observer=Listener())
    assert resume(copy, trust=Trust(plan=True), observer=Listener()).ok == 4
    assert resume(copy, observer=Listener()).ok == 4


@pytest.mark.parametrize("key", ["id", "directory", "first", "accepted", "digests"])
def test_a_run_that_lost_a_part_of_its_identity_ends_in_one_message_or_goes_on(run, key):
    raw = json.loads(run.run.read_text())
    del raw[key]
    run.run.write_text(json.dumps(raw))
    with suppress(RunError):
        assert resume(run.root, observer=Listener()).ok == 4


def test_compile_caches_that_came_with_a_copy_are_not_used(run):
    copy = RunPaths(Path(shutil.copytree(run.root, run.root.with_name("copy"))))
    (copy.caches / "planted").mkdir()
    assert resume(copy.root, observer=Listener()).ok == 4
    assert not (copy.caches / "planted").exists()


def plant_caches(paths: RunPaths, plan: Plan) -> tuple[Path, Path]:
    """Leave a compiled kernel, and a cold trial that says that it need not be made."""
    key = plan.order[-1][0]
    kernel, cold = paths.cache(key) / "kernel.so", paths.cold(key)
    kernel.parent.mkdir(parents=True, exist_ok=True)
    kernel.write_text("")
    shutil.copytree(paths.trial(key, TrialName(1)).root, cold.root, dirs_exist_ok=True)
    cold.outcome.write_text(json.dumps({**json.loads(cold.outcome.read_text()), "trial": "cold"}))
    seal(cold)
    return kernel, cold.root


def resume_until_a_rank_would_start(paths: RunPaths, given: Trust = trust.NOTHING) -> SessionResult:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    return resume(paths.root, trust=given, observer=Listener(), ensure=stopped)


def test_caches_in_a_copy_whose_run_json_states_its_true_inode_and_birth_are_gone(run, plan):
    sent = RunPaths(Path(shutil.copytree(run.root, run.root.with_name("sent"))))
    raw = json.loads(sent.run.read_text())
    true = {"directory": sent.root.stat().st_ino, "born_ns": born_ns(sent.root)}
    sent.run.write_text(json.dumps({**raw, **true}))
    kernel, cold = plant_caches(sent, plan)
    assert resume_until_a_rank_would_start(sent).ok == 3
    assert not kernel.exists()
    assert not cold.exists()
    assert resume(sent.root, observer=Listener()).ok == 4


def test_jobs_of_a_run_that_somebody_sent_find_no_caches(run, plan, elsewhere):
    planted = plant_caches(run, plan)
    prepare_jobs(run.root, trust=Trust(plan=True))
    assert not any(one.exists() for one in planted)


def test_a_runs_own_caches_stay_also_where_its_directory_is_renamed(run, plan):
    run = RunPaths(run.root.rename(run.root.with_name("renamed")))
    own = plant_caches(run, plan)
    resume_until_a_rank_would_start(run)
    prepare_jobs(run.root)
    assert all(one.exists() for one in own)


def test_caches_that_were_made_anew_stay_from_then_on(run, plan, elsewhere):
    before, _ = plant_caches(run, plan)
    resume_until_a_rank_would_start(run, Trust(plan=True))
    assert not before.exists()
    made, _ = plant_caches(run, plan)
    resume_until_a_rank_would_start(run)
    assert made.exists()


def test_a_job_on_a_node_with_another_home_keeps_the_caches_by_its_script(run, plan, elsewhere):
    own = plant_caches(run, plan)
    resume_until_a_rank_would_start(run, Trust(digests=frozenset(trust.for_jobs(run))))
    assert all(one.exists() for one in own)


def test_the_script_of_a_job_carries_the_digest_of_the_caches(run, slurm):
    submit(run)
    script = run.job_script(1).read_text()
    assert all(f"--own {one}" in script for one in trust.for_jobs(run))


def test_caches_in_a_directory_that_belongs_to_somebody_else_are_never_used(run, plan, monkeypatch):
    planted = plant_caches(run, plan)
    monkeypatch.setattr("os.geteuid", lambda: run.root.stat().st_uid + 1)
    resume_until_a_rank_would_start(run)
    assert not any(one.exists() for one in planted)


def test_where_nothing_can_be_kept_caches_are_made_anew(run, plan, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/self/nowhere")
    for _ in range(2):
        left, _ = plant_caches(run, plan)
        resume_until_a_rank_would_start(run)
        assert not left.exists()


def test_a_job_on_a_node_with_another_home_knows_the_run_by_its_script(run, elsewhere):
    with pytest.raises(RunError, match="--trust-plan"):
        prepare_jobs(run.root)
    own = Trust(digests=frozenset(trust.for_jobs(run)))
    assert resume(run.root, trust=own, observer=Listener()).ok == 4


def test_where_nothing_can_be_kept_a_users_own_directory_is_known_and_a_copy_is_not(
    run, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/self/nowhere")
    copy = Path(shutil.copytree(run.root, run.root.with_name("copy")))
    assert resume(run.root, observer=Listener()).ok == 4
    for _ in range(2):
        with pytest.raises(RunError, match="--trust-plan"):
            resume(copy, observer=Listener())


@pytest.fixture
def slurm(run: RunPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have the run's platform be a cluster, on which all jobs wait; give what it was asked."""
    plan = json.loads(run.plan.read_text())
    plan["platform"]["launcher"] = {"name": "slurm"}
    run.plan.write_text(json.dumps(plan))
    asked, folder = tmp_path / "asked", tmp_path / "bin"
    folder.mkdir()
    answers = {"sbatch": "echo 101", "scancel": ":", "sacct": ":"}
    answers["squeue"] = (
        'for n in $(echo $3 | tr -c "0-9\\n" " "); do echo $n PENDING 0:00 Priority; done'
    )
    for name, answer in answers.items():
        (folder / name).write_text(f"#!/bin/sh\necho {name} $* >> {asked}\n{answer}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return asked


def submit(run: RunPaths) -> None:
    platform = Platform.model_construct(name="p", launcher=Launcher(name="slurm"))
    queue.submit(run, platform, [Allocation(1, (), 3, 1.0)])


def name_a_job_of_the_user(run: RunPaths) -> None:
    jobs = json.loads(run.jobs.read_text()) if run.jobs.exists() else {"version": 1, "jobs": []}
    number = len(jobs["jobs"]) + 1
    jobs["jobs"].append(
        {"number": number, "job": "4711", "nodes": 1, "minutes": 5, "keys": [], "parts": 1}
    )
    run.jobs.write_text(json.dumps(jobs))


def test_a_job_that_a_run_was_submitted_as_is_cancelled(run, slurm):
    submit(run)
    bakeoff.main(["cancel", str(run.root)], standalone_mode=False)
    assert slurm.read_text().splitlines()[-1] == "scancel 101"


@pytest.mark.parametrize("is_among_own", [True, False])
def test_a_job_that_only_the_file_names_is_neither_cancelled_nor_asked_about(
    run, slurm, is_among_own, capsys
):
    if is_among_own:
        submit(run)
    name_a_job_of_the_user(run)
    for words in (["cancel", str(run.root)], ["resume", str(run.root), "--detach"]):
        with pytest.raises(
            RunError, match=r"you submitted these jobs(.|\n)*: 4711\. They are left"
        ):
            bakeoff.main(words, standalone_mode=False)
    bakeoff.main(["status", str(run.root)], standalone_mode=False)
    assert "job 4711, 1 node: not submitted by you from here" in capsys.readouterr().out
    asked = slurm.read_text() if slurm.exists() else ""
    assert "4711" not in asked
    assert "scancel" not in asked


def test_waiting_for_a_run_waits_for_no_job_that_only_the_file_names(run, slurm):
    name_a_job_of_the_user(run)
    bakeoff.main(["status", "--wait", str(run.root)], standalone_mode=False)
    assert not slurm.exists()


def test_the_jobs_of_another_run_of_the_user_are_not_this_ones(run, slurm, plan, tmp_path):
    start(plan, root=tmp_path / "runs" / "other", study_text=STUDY, observer=Listener())
    other = RunPaths(tmp_path / "runs" / "other")
    submit(other)
    run.jobs.write_bytes(other.jobs.read_bytes())
    with pytest.raises(RunError, match=r"101\. They are left alone"):
        bakeoff.main(["cancel", str(run.root)], standalone_mode=False)


def test_a_name_that_reads_like_the_line_of_another_file_is_told_from_both() -> None:
    both = {"a": b"1", "b": b"2"}
    one = {f"a\n{hashlib.sha256(b'2').hexdigest()}  b": b"1"}
    assert digest_of(one) != digest_of(both)
