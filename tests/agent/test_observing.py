"""Hold the observing agent to its place: it ends with its pipe and costs no trial."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from harness.agent.protocol import read_end
from harness.store.layout import TrialPaths
from harness.store.samples.recording import Recording, read_recording
from tests.collect.observing import wait_for

LONG = "import time; time.sleep(60)"


def recorded(folder: Path) -> Recording:
    (path,) = folder.glob(TrialPaths(folder).samples("*").name)
    recording = read_recording(path)
    assert recording is not None
    return recording


def test_a_trial_is_observed_where_the_host_says(agent: Any, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    agent.start(agent.command(f"open({str(pipe)!r}).read()", observe={}))
    (samples,) = tmp_path.glob(TrialPaths(tmp_path).samples("*").name)
    wait_for(samples, ("rank:0", "rank.resident"))
    pipe.write_text("")
    end = read_end(agent.hear("ended"))
    assert end.unobserved is None
    assert end.stand_ins == ()
    recording = recorded(tmp_path)
    assert recording.whole
    assert recording.find("rank:0", "rank.user") is not None
    (begins,) = recording.noted("begins")
    assert begins["cpus"]["0"]


def test_nothing_is_observed_unless_it_is_asked_for(agent: Any, tmp_path: Path) -> None:
    end = agent.run("pass")
    assert end.unobserved == "it was not asked for"
    assert list(tmp_path.glob("*.bin")) == []


def test_what_cannot_be_recorded_costs_no_trial(agent: Any, tmp_path: Path) -> None:
    end = agent.run("pass", observe={}, directory=str(tmp_path / "missing"))
    assert end.ranks[0].exit_code == 0
    assert "No such file" in str(end.unobserved)


def test_the_recording_ends_when_the_launchers_pipe_closes(agent: Any, tmp_path: Path) -> None:
    agent.start(agent.command(LONG, observe={}))
    assert agent.end() == 0
    assert recorded(tmp_path).whole


def test_one_agent_observes_one_trial_after_another(agent: Any, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        agent.run("pass", observe={}, directory=str(tmp_path / name))
        assert recorded(tmp_path / name).whole


def test_a_trial_keeps_to_its_folder_where_that_is_moved_and_replaced(
    agent: Any, tmp_path: Path
) -> None:
    trial, go = tmp_path / "trial", tmp_path / "go"
    trial.mkdir()
    os.mkfifo(go)
    script = f"open({str(go)!r}).read(); print('said'); open('made', 'w').close()"
    command = agent.command(script, directory=str(trial), observe={})
    (rank,) = command.ranks
    agent.start(replace(command, ranks=(replace(rank, cwd=str(trial)),)))
    trial.rename(tmp_path / "away")
    trial.mkdir()
    (trial / "rank.0.out").write_text("what another trial said")
    go.write_text("")
    assert read_end(agent.hear("ended")).ranks[0].exit_code == 0
    assert [one.name for one in trial.iterdir()] == ["rank.0.out"]
    assert (trial / "rank.0.out").read_text() == "what another trial said"
    assert (tmp_path / "away" / "rank.0.out").read_text() == "said\n"
    assert (tmp_path / "away" / "made").exists()
    assert recorded(tmp_path / "away").whole


def test_what_cannot_be_recorded_is_named_by_a_path_that_others_know(
    agent: Any, tmp_path: Path
) -> None:
    samples = TrialPaths(tmp_path).samples(socket.gethostname())
    samples.mkdir()
    end = agent.run("pass", observe={})
    assert str(end.unobserved).startswith(f"{samples}: ")


def test_no_rank_is_started_in_a_folder_that_took_its_own_ones_place(
    agent: Any, tmp_path: Path
) -> None:
    end = agent.run("open('made', 'w').close()", inode=tmp_path.stat().st_ino + 1)
    assert end.ranks[0].refused
    assert end.ranks[0].problem == f"{tmp_path}: another directory is here now"
    assert list(tmp_path.iterdir()) == []
    assert agent.run("pass", inode=tmp_path.stat().st_ino).ranks[0].exit_code == 0


@pytest.mark.parametrize("there", ["another job", "its own job, done", "no job"])
def test_on_other_nodes_a_folder_is_known_by_its_job_that_is_not_done(
    agent: Any, tmp_path: Path, there: str
) -> None:
    own, found = b'{"trial": "trial-1"}', tmp_path / "job.json"
    command = {"job": sha256(own).hexdigest(), "inode": None}
    if there != "no job":
        found.write_bytes(b'{"trial": "trial-2"}' if there == "another job" else own)
    (tmp_path / "outcome.json").write_text("what another run keeps")
    before = sorted(tmp_path.iterdir())
    end = agent.run("open('made', 'w').close()", **command)
    assert end.ranks[0].problem == f"{tmp_path}: another directory is here now"
    assert sorted(tmp_path.iterdir()) == before
    (tmp_path / "outcome.json").unlink()
    found.write_bytes(own)
    assert agent.run("pass", **command).ranks[0].exit_code == 0


def test_a_killed_agent_leaves_what_it_had_recorded(
    start_agent: Callable[..., Any], tmp_path: Path
) -> None:
    agent = start_agent()
    pid = agent.start(agent.command(LONG, observe={}))["pids"]["0"]
    agent.process.kill()
    agent.process.wait()
    assert not recorded(tmp_path).whole
    os.kill(pid, signal.SIGKILL)
