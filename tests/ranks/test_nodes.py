from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.agent.protocol import RankCommand, TrialCommand, TrialEnd
from harness.errors import Unavailable
from harness.launch.contract import Node
from harness.platform.platform import Platform
from harness.platform.starting import Launcher, Observer
from harness.ranks.interrupts import Interrupts
from harness.ranks.nodes import Nodes, reached
from harness.ranks.on_nodes import AgentLost
from harness.worker.place import TOKEN as TOKEN_VARIABLE

RUN = f"nodes-{os.getpid()}"
TOKEN = f"{RUN}/cell/trial-1"
WAIT = "import threading; threading.Event().wait()"
# Goes nowhere, but takes its words as ssh does.
SSH = '#!/bin/sh\nwhile [ "$1" = -o ]; do shift 2; done\nshift\nexec sh -c "$*"\n'


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    script = tmp_path / "ssh"
    script.write_text(SSH)
    launcher = Launcher(name="ssh", settings={"hosts": "n[1-3]", "command": f"sh {script}"})
    return Platform.model_construct(name="there", launcher=launcher, observer=Observer(cores=0))


@pytest.fixture
def nodes(platform: Platform, tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(platform, tmp_path / "agent.err", run=RUN)
    yield made
    made.close()


def run(nodes: Nodes, folder: Path, *scripts: str) -> tuple[tuple[Node, ...], TrialEnd | AgentLost]:
    gathered = nodes.gather(len(scripts), 1)
    commands = [
        (node, None, _command(folder, rank, script))
        for rank, (node, script) in enumerate(zip(gathered, scripts, strict=True))
    ]
    interrupts = Interrupts()
    with interrupts.installed():
        return gathered, nodes.run(commands, interrupts=interrupts, on_tick=lambda: None)


def _command(folder: Path, rank: int, script: str) -> TrialCommand:
    return TrialCommand(
        token=f"{TOKEN}-{rank}",
        directory=str(folder),
        ranks=(
            RankCommand(
                rank=rank,
                argv=(sys.executable, "-S", "-c", script),
                env={"BAKEOFF_TOKEN": f"{TOKEN}-{rank}"},
                cwd=str(folder),
                cpus=tuple(os.sched_getaffinity(0)),
            ),
        ),
        timeout_s=60.0,
        grace_s=5.0,
        memory_bytes=None,
        output_bytes=1 << 16,
    )


def test_nodes_are_asked_once_what_they_offer(nodes, platform):
    first, again = nodes.gather(2, 2), nodes.gather(2, 2)
    assert [node.name for node in first] == ["n1", "n2"]
    assert first[0].cpus == tuple(sorted(os.sched_getaffinity(0)))
    assert first[0].topology is not None
    assert len(first[0].ports) == 3
    assert not set(first[0].ports) & set(again[0].ports), "each trial has ports of its own"


def test_what_a_killed_session_left_on_a_node_is_ended_before_the_first_trial_there(
    platform, tmp_path, monkeypatch
):
    argv = [sys.executable, "-S", "-c", "import signal; signal.pause()"]
    others = {**os.environ, TOKEN_VARIABLE: f"{RUN}-2/cell/trial-1"}
    with (
        subprocess.Popen(argv, env={**os.environ, TOKEN_VARIABLE: TOKEN}) as left,
        subprocess.Popen(argv, env=others) as other,
    ):
        Nodes(platform, tmp_path / "agent.err", run=RUN).gather(1, 1)
        assert left.poll() is None, "the session swept its own machine by itself"
        monkeypatch.setattr("harness.ranks.nodes.boot_id", lambda: "another")
        nodes = Nodes(platform, tmp_path / "agent.err", run=RUN)
        nodes.gather(1, 1)
        assert left.wait() == -signal.SIGKILL
        with subprocess.Popen(argv, env={**os.environ, TOKEN_VARIABLE: TOKEN}) as running:
            nodes.gather(2, 1)
            assert running.poll() is None, "the same machine under another name"
            running.kill()
        assert other.poll() is None
        other.kill()


def test_a_command_on_a_node_gives_what_it_printed_or_why_not(platform):
    assert reached(platform, "n2").run("echo", "here I am") == "here I am\n"
    with pytest.raises(Unavailable, match=r"n2 \(ssh\): ls ended with 2: .*nowhere"):
        reached(platform, "n2").run("ls", "/nowhere")


def test_a_rank_that_dies_ends_the_trial_on_all_nodes_at_once(nodes, tmp_path):
    _, end = run(nodes, tmp_path, WAIT, "raise SystemExit(9)", WAIT)
    assert isinstance(end, TrialEnd)
    assert end.cause == "rank-failed"
    assert [rank.rank for rank in end.ranks] == [0, 1, 2]
    assert [rank.stopped for rank in end.ranks] == [True, False, True]
    assert end.ranks[1].exit_code == 9
    assert {rank.host for rank in end.ranks} == {socket.gethostname()}


def test_a_node_that_is_lost_is_named_and_taken_last_from_then_on(nodes, tmp_path):
    kill = "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"
    _, end = run(nodes, tmp_path, kill, WAIT)
    assert isinstance(end, AgentLost)
    assert end.nodes
    gathered, again = run(nodes, tmp_path, "pass", "pass")
    assert [node.name for node in gathered] == ["n2", "n3"]
    assert isinstance(again, TrialEnd)
    assert again.cause == "ended"


def test_too_few_nodes_are_refused(nodes):
    with pytest.raises(Unavailable, match="there offers 3 of 4 nodes"):
        nodes.gather(4, 1)
