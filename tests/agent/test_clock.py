"""Compare two real clocks: an agent in a time of its own, with slow ways to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from harness.agent.clock import identity
from harness.agent.protocol import RankCommand, TrialCommand
from harness.ranks.agent_client import AgentProcess
from harness.ranks.agent_clock import BURST, ClockComparison
from harness.ranks.interrupts import Interrupts
from harness.stats.clock import RoundTrip
from harness.store.node_clocks import read_clocks
from tests.needs import missing, program

EXCHANGES = int(os.environ.get("BAKEOFF_CLOCK_EXCHANGES", "10"))
SHIFT_S = 54_321

WAY = """
import os, select, subprocess, sys, time
there, back = float(sys.argv[1]), float(sys.argv[2])
child = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
while True:
    ready, _, _ = select.select([0, child.stdout], [], [])
    if 0 in ready:
        data = os.read(0, 1 << 16)
        time.sleep(there)
        if not data:
            child.stdin.close()
            sys.exit(child.wait())
        child.stdin.write(data)
    if child.stdout in ready:
        data = child.stdout.read(1 << 16)
        time.sleep(back)
        if not data:
            sys.exit(child.wait())
        os.write(1, data)
"""
"""A way that is slower in one direction, as networks are under load."""


def elsewhere() -> list[str]:
    """Give what starts a command under a monotonic clock that is far ahead."""
    if os.geteuid() != 0:
        missing("the right to make time namespaces", "run as root")
    unshare = program("unshare", package="util-linux")
    shifted = [unshare, "--time", "--monotonic", str(SHIFT_S), "--fork", "--kill-child"]
    done = subprocess.run([*shifted, "true"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        missing(f"time namespaces ({done.stderr.strip()})", "a kernel of 5.6 or later")
    return shifted


def command(folder: Path) -> TrialCommand:
    rank = RankCommand(
        rank=0,
        argv=("true",),
        env={"PATH": os.environ["PATH"]},
        cwd=str(folder),
        cpus=tuple(os.sched_getaffinity(0)),
    )
    return TrialCommand(
        f"clock-{os.getpid()}/c/trial-1", str(folder), (rank,), 60.0, 60.0, None, 1 << 16
    )


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Callable[..., AgentProcess]]:
    agents = []

    def run(through: Sequence[str] = (), trials: int = 1) -> AgentProcess:
        agents.append(AgentProcess(tmp_path / "agent.err", through=through))
        interrupts = Interrupts()
        with interrupts.installed():
            for _ in range(trials):
                end = agents[-1].run(
                    command(tmp_path), core=None, interrupts=interrupts, on_tick=lambda: None
                )
                assert end is not None
                assert end.ranks[0].exit_code == 0
        return agents[-1]

    yield run
    for agent in agents:
        agent.close()


@pytest.mark.parametrize(
    ("there", "back"), [(0.0, 0.0), (0.004, 0.001)], ids=["quick", "one way four times slower"]
)
def test_the_true_offset_is_always_within_the_reported_bound(
    trial: Callable[..., AgentProcess], there: float, back: float
) -> None:
    way = [sys.executable, "-S", "-c", WAY, str(there), str(back)] if there else []
    agent = trial([*way, *elsewhere()], EXCHANGES // 2)
    assert agent.clock is not None
    told = agent.clock.record()
    taken = [RoundTrip(*times) for times in told["exchanges"]]
    truth = SHIFT_S * 1e9
    assert len(taken) == EXCHANGES
    assert [one for one in taken if abs(one.offset_ns - truth) > one.bound_ns] == []
    assert min(one.round_trip_ns for one in taken) >= (there + back) * 1e9
    clocks = read_clocks({"here": {"own": True, "exchanges": []}, "there": told})
    bound_s = clocks.bound_s(["here", "there"])
    assert bound_s is not None
    off = [clocks.host_ns("there", one.t1 + truth) - one.t1 for one in taken]
    assert max(map(abs, off)) <= bound_s * 1e9


def test_an_agent_that_reads_the_hosts_own_clock_is_asked_nothing(
    trial: Callable[..., AgentProcess],
) -> None:
    agent = trial()
    assert agent.clock is not None
    told = agent.clock.record()
    assert told == {"own": True, "exchanges": []}
    assert read_clocks({agent.host: told}).bound_s([agent.host]) == 0


def answered(comparison: ClockComparison, lead_ns: int) -> list[bytes]:
    """Answer a burst as an agent at no distance would."""
    questions = [comparison.begin()]
    while comparison.is_asking:
        asked_ns = comparison._asked_ns
        message = {"number": len(questions), "received_ns": asked_ns + lead_ns}
        message["answered_ns"] = message["received_ns"]
        questions.append(comparison.take_answer(message, asked_ns + 10))
    return questions


def test_of_a_burst_one_exchange_is_kept_and_told_once() -> None:
    comparison = ClockComparison("another boot")
    questions = answered(comparison, 7)
    assert questions.pop() == b""
    assert len(questions) == BURST
    assert all(b'"clock"' in question for question in questions)
    (kept,) = comparison.record()["exchanges"]
    assert kept[1] - kept[0] == 7
    assert comparison.record() == {"own": False, "exchanges": []}


def test_an_answer_that_comes_too_late_counts_for_no_later_question() -> None:
    comparison = ClockComparison("another boot")
    comparison.begin()
    late = {"number": 1, "received_ns": 1, "answered_ns": 2}
    comparison.give_up()
    comparison.begin()
    assert comparison.take_answer(late, 10**18) == b""
    assert comparison.is_asking


def test_a_clock_is_known_by_its_boot_and_its_time_namespace(tmp_path: Path) -> None:
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("b00t\n", encoding="ascii")
    assert identity(tmp_path) == "b00t"
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/time").symlink_to("time:[5]")
    assert identity(tmp_path) == "b00t time:[5]"
