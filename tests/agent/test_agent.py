from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from .conftest import WITHOUT_GROUPS

SLEEP = "import threading; threading.Event().wait()"
DEAF = f"import signal; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); {SLEEP}"
HOG = "hoard = []\nwhile True: hoard.append(b'x' * 4_000_000)"


def test_one_agent_serves_many_trials(agent):
    assert agent.run("pass").ranks[0].exit_code == 0
    assert agent.run("raise SystemExit(7)").ranks[0].exit_code == 7


def test_ranks_are_accounted_for_one_by_one(agent):
    end = agent.run("sum(range(3_000_000))", "pass")
    assert [rank.rank for rank in end.ranks] == [0, 1]
    assert end.ranks[0].cpu_s > end.ranks[1].cpu_s > 0
    assert end.ranks[0].max_rss_bytes > 2**20
    assert end.started_wall_ns < end.ended_wall_ns


def test_each_rank_leads_a_session_of_its_own_with_nothing_inherited(agent, tmp_path):
    script = "import os; print(os.getsid(0) == os.getpid(), sorted(os.listdir('/proc/self/fd')))"
    agent.run(script)
    # The fourth is the listing of the folder itself.
    assert (tmp_path / "rank.0.out").read_text() == "True ['0', '1', '2', '3']\n"


def test_a_rank_that_cannot_start_ends_the_others_and_says_why(agent):
    command = agent.command(SLEEP, SLEEP)
    broken = replace(command.ranks[1], argv=("/no/python",))
    agent.start(replace(command, ranks=(command.ranks[0], broken)))
    first, second = agent.hear("ended")["ranks"]
    assert first["signal"] == signal.SIGTERM
    assert second["problem"] == "cannot start /no/python: /no/python: No such file or directory"


def test_cancelling_without_grace_kills_what_will_not_listen(agent, tmp_path):
    agent.start(agent.command(DEAF))
    agent.cancel(grace_s=60.0)
    agent.cancel(grace_s=0.0)
    end = agent.hear("ended")
    assert end["cause"] == "cancel"
    assert end["ranks"][0]["stopped"]


def test_an_agent_whose_pipe_closes_ends_its_ranks_and_itself(start_agent):
    agent = start_agent()
    (pid,) = agent.start(agent.command(DEAF))["pids"].values()
    watched = os.pidfd_open(pid)
    assert agent.end() == 0
    assert select.select([watched], [], [], 0)[0] == [watched]
    os.close(watched)


def test_an_agent_told_to_end_politely_ends_its_ranks_first(start_agent):
    agent = start_agent()
    agent.start(agent.command(DEAF))
    agent.process.send_signal(signal.SIGTERM)
    assert agent.hear("ended")["cause"] == "closed"
    assert agent.process.wait(60) == 0


def test_ctrl_c_is_no_business_of_the_agent(agent):
    agent.process.send_signal(signal.SIGINT)
    assert agent.run("pass").cause == "ended"


def test_without_control_groups_memory_is_limited_by_rlimit_data(start_agent):
    agent = start_agent("-c", WITHOUT_GROUPS)
    end = agent.run(HOG, memory_bytes=200 * 2**20)
    assert end.memory.how == "RLIMIT_DATA"
    assert end.ranks[0].exit_code == 1
    assert "MemoryError" in (agent.folder / "rank.0.err").read_text()
    assert agent.run("x = b'x' * (300 * 2**20)").ranks[0].exit_code == 0


@pytest.mark.parametrize("without_groups", [False, True])
def test_a_limit_too_small_for_anything_ends_the_rank_and_not_the_agent(
    start_agent, without_groups
):
    agent = start_agent(*(("-c", WITHOUT_GROUPS) if without_groups else ()))
    end = agent.run("pass", memory_bytes=1)
    assert end.cause == "ended"
    assert end.ranks[0].exit_code != 0
    assert agent.run("pass").ranks[0].exit_code == 0


def test_an_agent_is_never_under_the_limit_of_its_ranks(agent):
    before = Path(f"/proc/{agent.process.pid}/cgroup").read_text()
    (pid,) = agent.start(agent.command(SLEEP, memory_bytes=200 * 2**20))["pids"].values()
    assert Path(f"/proc/{agent.process.pid}/cgroup").read_text() == before
    limits = Path(f"/proc/{agent.process.pid}/limits").read_text()
    assert Path(f"/proc/{pid}/limits").read_text() != limits or (
        Path(f"/proc/{pid}/cgroup").read_text() != before
    )
    agent.cancel(grace_s=0.0)
    agent.hear("ended")


def test_a_silent_rank_leaves_no_files(agent, tmp_path):
    agent.run("pass")
    assert list(tmp_path.iterdir()) == []


def test_starting_an_agent_imports_nothing_heavy():
    code = "import sys, harness.agent.serve; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    heavy = {"numpy", "pydantic", "click", "duckdb", "asyncio", "psutil"}
    assert not heavy & set(loaded.split())
