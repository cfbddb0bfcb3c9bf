from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

from harness.agent.protocol import line
from harness.agent.turns.foreign_use import ForeignUse
from harness.store.layout import TrialPaths
from tests.agent.test_observing import recorded
from tests.collect.observing import wait_for

ROOT = Path(__file__).resolve().parents[2]
SPEAK = """
import json, os, socket
there = socket.socket(fileno=int(os.environ["BAKEOFF_TURNS"])).makefile("rw")
def ask(**told):
    print(json.dumps(told), file=there, flush=True)
    return json.loads(there.readline())
"""
POLITE = f"""{SPEAK}
word = ask(say="ready", step_s=0.5)
while word["say"] == "turn":
    print(word["round"], word["span"], word["disturbed"], flush=True)
    word = ask(say="turned")
print(word["say"], flush=True)
"""
HANGS = f"""{SPEAK}
ask(say="ready", step_s=0.5)
import threading; threading.Event().wait()
"""
FAILS = f"""{SPEAK}
ask(say="ready", step_s=0.5)
raise SystemExit(7)
"""
WORKER = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
import os
from harness.worker.windows.turns import RankTurns
RankTurns(int(os.environ["BAKEOFF_TURNS"]))._ask(say="ready", step_s=0.5)
"""


def turn(number: int, *, most_foreign: dict[str, float] | None = None) -> bytes:
    span = {"seconds": 1.0}
    return line(
        "turn",
        round=number,
        attempt=1,
        span=span,
        helpers=[],
        most_foreign=most_foreign,
    )


def is_stopped(pid: int) -> bool:
    """Tell whether a process stops: the signal is on its way when its agent says so."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return True
        select.select([], [], [], 0.001)
    return False


def test_a_trial_stands_still_until_its_turn_and_after_it(agent, tmp_path):
    (pid,) = agent.start(agent.command(POLITE, turns=True))["pids"].values()
    assert agent.hear("waits")["step_s"] == 0.5
    assert is_stopped(pid)
    for number in (1, 2):
        agent.say(turn(number))
        assert agent.hear("waits")["disturbed"] == ""
        assert is_stopped(pid)
    agent.say(line("finish"))
    assert agent.hear("ended")["ranks"][0]["exit_code"] == 0
    said = (tmp_path / "rank.0.out").read_text().splitlines()
    assert said == ["1 {'seconds': 1.0} ", "2 {'seconds': 1.0} ", "finish"]


def test_all_ranks_wait_before_their_trial_does(agent):
    pids = agent.start(agent.command(POLITE, POLITE, turns=True))["pids"].values()
    agent.hear("waits")
    assert all(map(is_stopped, pids))
    agent.say(turn(1))
    agent.hear("waits")
    agent.say(line("finish"))
    assert [rank["exit_code"] for rank in agent.hear("ended")["ranks"]] == [0, 0]


def test_no_time_passes_for_a_trial_that_stands_still(agent):
    agent.start(agent.command(POLITE, turns=True, timeout_s=2.0))
    agent.hear("waits")
    assert not select.select([agent.process.stdout], [], [], 2.5)[0]
    agent.say(line("finish"))
    assert agent.hear("ended")["cause"] == "ended"


def test_nothing_is_observed_while_a_trial_stands_still(agent, tmp_path):
    agent.start(agent.command(POLITE, turns=True, observe={}))
    agent.hear("waits")
    wait_for(TrialPaths(tmp_path).samples(socket.gethostname()), ("rank:0", "rank.resident"))
    assert not select.select([agent.process.stdout], [], [], 2.0)[0]
    agent.say(line("finish"))
    agent.hear("ended")
    recording = recorded(tmp_path)
    assert recording.whole
    for series in recording.named("cpu.user"):
        gaps_s = [(b - a) / 1e9 for a, b in pairwise(series.times_ns.tolist())]
        assert max(gaps_s) > 1.5


def test_a_turn_that_never_ends_is_ended_by_the_timeout(agent):
    agent.start(agent.command(HANGS, turns=True, timeout_s=2.0))
    agent.hear("waits")
    agent.say(turn(1))
    end = agent.hear("ended")
    assert (end["cause"], end["ranks"][0]["signal"]) == ("timeout", signal.SIGTERM)


def test_a_trial_that_stands_still_hears_that_it_is_cancelled(agent):
    agent.start(agent.command(HANGS, turns=True))
    agent.hear("waits")
    agent.cancel(grace_s=60.0)
    end = agent.hear("ended")
    assert (end["cause"], end["ranks"][0]["signal"]) == ("cancel", signal.SIGTERM)


def test_a_rank_that_fails_in_its_turn_ends_the_others_of_its_trial(agent):
    agent.start(agent.command(FAILS, HANGS, turns=True))
    agent.hear("waits")
    agent.say(turn(1))
    first, second = agent.hear("ended")["ranks"]
    assert first["exit_code"] == 7
    assert second["signal"] == signal.SIGTERM


def test_a_rank_killed_while_it_stands_still_is_noticed(agent):
    (pid,) = agent.start(agent.command(HANGS, turns=True))["pids"].values()
    agent.hear("waits")
    os.kill(pid, signal.SIGKILL)
    assert agent.hear("ended")["ranks"][0]["signal"] == signal.SIGKILL
    agent.say(turn(1))
    assert agent.run("pass").ranks[0].exit_code == 0


def test_an_agent_that_ends_leaves_nobody_stopped(start_agent):
    agent = start_agent()
    (pid,) = agent.start(agent.command(HANGS, turns=True))["pids"].values()
    agent.hear("waits")
    watched = os.pidfd_open(pid)
    assert agent.end() == 0
    assert select.select([watched], [], [], 0)[0] == [watched]
    os.close(watched)


def test_a_stopped_worker_dies_with_an_agent_that_is_killed(agent):
    (pid,) = agent.start(agent.command(WORKER, turns=True))["pids"].values()
    agent.hear("waits")
    assert is_stopped(pid)
    watched = os.pidfd_open(pid)
    agent.process.kill()
    assert select.select([watched], [], [], 60)[0] == [watched]
    os.close(watched)
    agent.process.wait(60)


def test_what_others_use_of_the_cores_is_counted_and_what_helpers_use_is_not():
    cpu = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{cpu}}}); print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as busy:
        busy.stdout.readline()
        seen = []
        for helpers in ([], [busy.pid]):
            use = ForeignUse([cpu])
            begun = time.clock_gettime(~busy.pid << 3 | 2)
            use.begin([], helpers)  # a child of this process would count as a rank's
            while time.clock_gettime(~busy.pid << 3 | 2) < begun + 0.3:
                select.select([], [], [], 0.05)
            seen.append(use.end()[0])
        busy.kill()
    assert seen[0] > 0.2
    assert seen[1] < seen[0]
