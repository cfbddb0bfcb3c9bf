from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.agent import clock, processes
from harness.agent.protocol import RankCommand, TrialCommand
from harness.ranks import agent_client as module
from harness.ranks.agent_client import AgentProcess
from harness.ranks.interrupts import Interrupts
from harness.worker.redaction.places import HIDDEN

TOKEN = f"agent-process-{os.getpid()}/cell/trial-1"
SLEEP = "import threading; threading.Event().wait()"


def command(folder: Path, script: str) -> TrialCommand:
    rank = RankCommand(
        rank=0,
        argv=(sys.executable, "-S", "-c", script),
        env={"BAKEOFF_TOKEN": TOKEN},
        cwd=str(folder),
        cpus=tuple(os.sched_getaffinity(0)),
    )
    return TrialCommand(TOKEN, str(folder), (rank,), 60.0, 60.0, None, 1 << 16)


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    made = Interrupts()
    with made.installed():
        yield made


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentProcess]:
    made = AgentProcess(tmp_path / "agent.err")
    yield made
    made.close()


def test_an_interrupt_just_before_a_trial_ends_it(agent, interrupts, tmp_path):
    os.kill(os.getpid(), signal.SIGINT)
    assert interrupts.count == 1
    end = agent.run(
        command(tmp_path, SLEEP), core=None, interrupts=interrupts, on_tick=lambda: None
    )
    assert end is not None
    assert end.cause == "cancel"


def test_an_agent_that_cannot_be_started_leaves_no_file_open(interrupts, tmp_path):
    errors = tmp_path / "agent.err"
    agent = AgentProcess(errors, through=[str(tmp_path / "absent")])
    with pytest.raises(FileNotFoundError) as raised:  # whose frames would keep the file
        agent.begin(command(tmp_path, SLEEP), core=None, interrupts=interrupts)
    assert raised.value.filename == str(tmp_path / "absent")
    assert errors not in {one.resolve() for one in Path("/proc/self/fd").iterdir()}


def test_an_agent_that_falls_silent_is_given_up_and_its_ranks_are_ended(
    agent, interrupts, tmp_path, monkeypatch
):
    parent = tmp_path / "parent"
    script = f"import os, pathlib\npathlib.Path({str(parent)!r}).write_text(str(os.getppid()))\n"

    def stop_agent() -> None:
        if parent.is_file() and parent.read_text():
            os.kill(int(parent.read_text()), signal.SIGSTOP)
            monkeypatch.setattr(module, "_SILENCE_S", 2.0)  # a busy machine is silent for longer

    end = agent.run(
        command(tmp_path, script + SLEEP), core=None, interrupts=interrupts, on_tick=stop_agent
    )
    monkeypatch.undo()
    assert end is None
    assert processes.carriers(processes.mark(TOKEN)) == []
    again = agent.run(
        command(tmp_path, "pass"), core=None, interrupts=interrupts, on_tick=lambda: None
    )
    assert again is not None
    assert again.ranks[0].exit_code == 0


DYING = f"""
import json, sys
ready = {{"say": "ready", "pid": 1, "host": "n1", "clock": {clock.identity()!r}}}
print(json.dumps(ready), flush=True)
sys.stdin.readline()
sys.exit("Traceback ...\\nRuntimeError: no room for an agent\\n")
"""


def test_what_an_agent_said_as_it_died_is_quoted_with_its_file(interrupts, tmp_path):
    errors = tmp_path / "agent.err"
    errors.write_text("said of an earlier trial\n")
    dying = AgentProcess(errors, through=(sys.executable, "-c", DYING))
    end = dying.run(
        command(tmp_path, "pass"), core=None, interrupts=interrupts, on_tick=lambda: None
    )
    assert end is None
    assert dying.complaint == f"It said last: RuntimeError: no room for an agent Log: {errors}"
    errors.write_text("")
    dying.close()


def test_a_host_that_was_stopped_itself_gives_no_agent_up(agent, interrupts, tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    later = itertools.count(time.monotonic() + 3600, 3600)
    ticks = itertools.count(1)

    def resumed() -> None:
        """Go on an hour later, as a job that was stopped in its terminal."""
        clock = SimpleNamespace(monotonic=lambda: next(later), monotonic_ns=time.monotonic_ns)
        monkeypatch.setattr(module, "time", clock)
        if next(ticks) == 3:
            pipe.write_text("")

    monkeypatch.setattr(module, "TICK_S", 0.05)
    end = agent.run(
        command(tmp_path, f"open({str(pipe)!r}).read()"),
        core=None,
        interrupts=interrupts,
        on_tick=resumed,
    )
    assert end is not None
    assert end.cause == "ended"


def test_an_agent_that_had_nothing_to_complain_of_leaves_no_file(interrupts, tmp_path):
    agent = AgentProcess(tmp_path / "agent.err")
    agent.run(command(tmp_path, "pass"), core=None, interrupts=interrupts, on_tick=lambda: None)
    agent.close()
    assert list(tmp_path.iterdir()) == []


def test_what_an_agent_is_reached_through_complains_of_without_secrets(interrupts, tmp_path):
    key = "-----BEGIN RSA PRIVATE" + " KEY-----\n" + "\n".join(["c2VjcmV0" * 8] * 3)
    said = f"Warning: token=hunter2\n{key}\n-----END RSA PRIVATE KEY-----\nlast"
    through = ("sh", "-c", f"printf %s '{said}' >&2; exec \"$@\"", "sh")
    agent = AgentProcess(tmp_path / "agent.err", through=through)
    agent.run(command(tmp_path, "pass"), core=None, interrupts=interrupts, on_tick=lambda: None)
    agent.close()
    assert (tmp_path / "agent.err").read_text() == f"Warning: token={HIDDEN}\n{HIDDEN}\nlast"


def test_what_a_login_script_says_before_an_agent_is_no_message(interrupts, tmp_path):
    greeting = ("sh", "-c", 'echo Welcome to node 1; echo; exec "$@"', "sh")
    agent = AgentProcess(tmp_path / "agent.err", through=greeting)
    end = agent.run(
        command(tmp_path, "pass"), core=None, interrupts=interrupts, on_tick=lambda: None
    )
    agent.close()
    assert end is not None
    assert end.cause == "ended"
