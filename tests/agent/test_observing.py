"""Hold the observing agent to its place: it ends with its pipe and costs no trial."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def test_a_killed_agent_leaves_what_it_had_recorded(
    start_agent: Callable[..., Any], tmp_path: Path
) -> None:
    agent = start_agent()
    pid = agent.start(agent.command(LONG, observe={}))["pids"]["0"]
    agent.process.kill()
    agent.process.wait()
    assert not recorded(tmp_path).whole
    os.kill(pid, signal.SIGKILL)
