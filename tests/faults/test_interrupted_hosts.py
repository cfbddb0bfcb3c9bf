from __future__ import annotations

import os
import shutil
import signal
import subprocess

import pytest

from harness.errors import RunError
from harness.run.session import resume

from .conftest import PATIENCE_S, Study, bakeoff, contents, wait_until_gone
from .host import Teller


def test_after_kill_9_of_the_host_nothing_is_left_and_resume_repeats_nothing(study, start_host):
    study.write("behave", "hang-at-first", trials=3, measure='timeout = "5 min"')
    host = start_host()
    # The cell that hangs stops the session in its first trial, wherever the order has put it.
    said = host.wait_for("progressed", phase="warm-up")
    agents, ranks = host.children(), study.processes()
    before = {name: one["ended_wall_ns"] for name, one in study.outcomes().items()}
    host.signal(signal.SIGKILL)
    assert said["done"] == len(before)
    assert agents
    assert ranks
    wait_until_gone(agents + ranks)
    assert study.processes() == []

    plan = study.paths.plan  # the cell that hung is to behave now
    plan.write_text(plan.read_text().replace("hang-at-first", "behave"))
    again = start_host()
    again.wait_for("result", done=6, total=6, interrupted=0)
    assert again.end() == 0
    after = study.outcomes()
    assert {name: after[name]["ended_wall_ns"] for name in before} == before
    assert len(after) == 6
    assert len({(one["cell"], one["trial"]) for one in study.logged("trial")}) == 6
    assert len(list(study.paths.interrupted.iterdir())) == 1


def test_a_run_that_is_renamed_meanwhile_goes_on_where_it_is(study, start_host, tmp_path):
    study.write("wait-for-go", trials=2)
    os.mkfifo(tmp_path / "go")
    host = start_host()
    host.wait_for("progressed", phase="warm-up")
    away = study.paths.root.rename(tmp_path / "away")
    with (tmp_path / "go").open("wb"):
        (tmp_path / "go").unlink()
    assert host.end() != 0
    assert not study.paths.root.exists()
    away.rename(study.paths.root)
    again = start_host()
    again.wait_for("result", done=2, total=2, interrupted=0)
    assert again.end() == 0


def test_another_run_that_is_put_in_the_place_of_one_at_work_is_left_as_it_is(
    study, start_host, tmp_path
):
    study.write("wait-for-go", trials=3)
    other = Study(tmp_path / "other")
    other.folder.mkdir()
    other.write("wait-for-go", trials=3)
    assert start_host(other).end() == 0
    whole = contents(other.paths.root)
    assert len(other.outcomes()) == 3

    os.mkfifo(tmp_path / "go")
    host = start_host()
    host.wait_for("progressed", phase="warm-up")
    away = study.paths.root.rename(tmp_path / "away")
    other.paths.root.rename(study.paths.root)
    with (tmp_path / "go").open("wb"):
        (tmp_path / "go").unlink()
    assert host.end() != 0
    assert contents(study.paths.root) == whole

    study.paths.root.rename(other.paths.root)
    away.rename(study.paths.root)
    again = start_host()
    again.wait_for("result", done=3, total=3, interrupted=0)
    assert again.end() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")
def test_a_run_whose_file_system_is_unmounted_meanwhile_ends_in_words_and_goes_on(study, tmp_path):
    study.write("wait-for-go", trials=2)
    disk, kept = tmp_path / "runs", tmp_path / "kept"
    for folder, mount in ((disk, ("-t", "tmpfs", "none")), (kept, ("--bind", disk))):
        folder.mkdir()
        if subprocess.run(["mount", *mount, folder], check=False).returncode != 0:
            pytest.skip("this root may not mount anything")
    try:
        os.mkfifo(disk / "go")
        command = ("run", "study.toml", "--platform", "platform.toml", "--name", "it")
        with bakeoff(*command, cwd=tmp_path) as session:
            with (disk / "go").open("wb"):  # once a rank waits there
                subprocess.run(["umount", "--lazy", disk], check=True)
                (kept / "go").unlink()
            _, said = session.communicate(timeout=PATIENCE_S)
        assert session.returncode == 1, said
        assert "Traceback" not in said
        assert "unmounted" in said
        assert list(disk.iterdir()) == []
        subprocess.run(["mount", "--bind", kept, disk], check=True)
        with bakeoff("resume", "it", cwd=tmp_path) as session:
            _, said = session.communicate(timeout=PATIENCE_S)
        assert session.returncode == 0, said
        assert len(list(disk.glob("it/cells/*/*/outcome.json"))) == 2
    finally:
        for folder in (disk, kept):
            subprocess.run(["umount", "--lazy", folder], check=False, stderr=subprocess.DEVNULL)


def test_a_copy_of_a_run_is_resumed_without_harm_to_its_running_original(
    study, start_host, tmp_path
):
    study.write("wait-for-go", trials=2)
    os.mkfifo(tmp_path / "go")
    original = start_host()
    original.wait_for("progressed", phase="warm-up")
    at_work = study.processes()
    assert at_work
    copied = Study(tmp_path / "copy")
    shutil.copytree(study.paths.root, copied.paths.root)

    copy = start_host(copied)
    copy.wait_for("result", done=2, total=2, interrupted=0)
    assert copy.end() == 0
    assert study.processes() == at_work
    with (tmp_path / "go").open("wb"):
        (tmp_path / "go").unlink()
    original.wait_for("result", done=2, total=2, interrupted=0)
    assert original.end() == 0
    for one in (study, copied):
        assert [kept["outcome"] for kept in one.outcomes().values()] == ["ok", "ok"]
    assert not study.paths.interrupted.exists()


def test_a_second_bakeoff_on_a_run_is_refused_by_name(study, start_host):
    study.write("hang", measure='timeout = "5 min"')
    host = start_host()
    host.wait_for("progressed", phase="warm-up")
    with pytest.raises(RunError, match=rf"the bakeoff process {host.process.pid} on \S+ is"):
        resume(study.paths.root, observer=Teller())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_request_to_stop_ends_the_trial_gently_and_starts_nothing_more(
    study, start_host, number
):
    study.write("hang", trials=2, measure='timeout = "5 min"')
    host = start_host()
    host.wait_for("progressed", phase="warm-up")
    host.signal(number)
    host.wait_for("result", done=0, total=2, interrupted=128 + number)
    assert host.end() == 0
    outcome = study.outcome()
    assert outcome["outcome"] == "cancelled"
    assert "bakeoff resume" in outcome["reason"]
    assert outcome["ranks"][0]["signal"] == signal.SIGTERM
    assert study.processes() == []


def test_a_session_started_by_nohup_outlives_its_terminal(study, start_host):
    study.write("behave", trials=9)
    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # inherited, as nohup does it
    try:
        host = start_host()
    finally:
        signal.signal(signal.SIGHUP, earlier)
    host.wait_for("ended")
    for process in (host.process.pid, *host.children()):
        os.kill(process, signal.SIGHUP)
    host.wait_for("result", done=9, total=9, interrupted=0)
    assert host.end() == 0


@pytest.mark.slow
def test_a_second_request_kills_at_once(study, start_host):
    study.write("deaf", trials=2, measure='timeout = "5 min"')
    host = start_host()
    host.wait_for("progressed", phase="warm-up")
    host.signal(signal.SIGINT)
    host.wait_for("noted")
    host.signal(signal.SIGINT)
    host.wait_for("noted", text="Killing the running trial.")
    host.wait_for("result", interrupted=130)
    assert study.outcome()["ranks"][0]["signal"] == signal.SIGKILL
    assert study.processes() == []


def test_a_lost_agent_costs_one_attempt_and_leaves_nothing(study, start_host):
    study.write("hang-at-first", measure='timeout = "5 min"')
    host = start_host()
    host.wait_for("progressed", phase="warm-up")
    (agent,) = host.children()
    os.kill(agent, signal.SIGKILL)
    host.wait_for("result", done=1, total=1)
    assert [one["outcome"] for one in study.outcomes().values()] == ["node-lost", "ok"]
    assert study.processes() == []


@pytest.mark.slow
def test_a_cancelled_trial_is_run_again_on_resume(study, start_host):
    study.write("hang-at-first", measure='timeout = "5 min"')
    host = start_host()
    host.wait_for("progressed", phase="warm-up")
    host.signal(signal.SIGINT)
    assert host.end() == 0
    again = start_host()
    again.wait_for("result", done=1, total=1, interrupted=0)
    assert [one["outcome"] for one in study.outcomes().values()] == ["cancelled", "ok"]
