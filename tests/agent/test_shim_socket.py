from __future__ import annotations

import os
import sys
from dataclasses import replace

import pytest

from harness.agent.protocol import STARTER, RankCommand, read_end, trial_line
from harness.agent.shim import DOOR

SHIM = f"{sys.executable} -E -P -m harness.agent.shim"
FAILS = "raise SystemExit(7)"
TELL = "import os, sys; print(os.environ['OMPI_COMM_WORLD_RANK'], os.getppid())"


def as_mpirun(door: str, *more: str) -> str:
    """Start a shim for each of two ranks, as an engine does, and end as the first of them ends."""
    start = (
        f"{DOOR}={door} OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
        f"OMPI_COMM_WORLD_RANK={{rank}} OMPI_COMM_WORLD_LOCAL_RANK={{rank}} {SHIM}"
    )
    ranks = [start.format(rank=rank) for rank in (0, 1)]
    return "; ".join([f"{ranks[0]} & first=$!", f"{ranks[1]} & second=$!", *more])


@pytest.fixture
def door() -> str:
    return f"bakeoff-test-{os.getpid()}"


def started_by(agent, script: str, door: str, *ranks: str):
    starter = RankCommand(
        rank=STARTER,
        argv=("/bin/sh", "-c", script),
        env=dict(os.environ),
        cwd=str(agent.folder),
        cpus=tuple(os.sched_getaffinity(0)),
    )
    return replace(agent.command(*ranks), door=door, starter=starter)


def test_ranks_have_the_identity_of_their_shims_and_are_the_agents_own_children(agent, door):
    script = as_mpirun(door, "wait $first $second")
    agent.start(started_by(agent, script, door, TELL, TELL))
    end = read_end(agent.hear("ended"))
    assert (end.cause, [rank.exit_code for rank in end.ranks]) == ("ended", [0, 0])
    for rank in (0, 1):
        said = (agent.folder / f"rank.{rank}.out").read_text().split()
        assert said == [str(rank), str(agent.process.pid)]


def test_whoever_ends_a_shim_ends_its_rank(agent, door):
    script = as_mpirun(door, "read word < ready; kill $second; wait $first")
    os.mkfifo(agent.folder / "ready")
    waits = "import threading; threading.Event().wait()"
    agent.start(started_by(agent, script, door, waits, waits))
    (agent.folder / "ready").write_text("now\n")
    end = read_end(agent.hear("ended"))
    assert end.cause == "rank-failed"
    assert all(rank.stopped for rank in end.ranks)


def test_an_engine_that_starts_nothing_is_the_reason(agent, door):
    script = "echo 'ssh: no route to cn7' >&2; exit 9"
    command = started_by(agent, script, door, TELL, TELL)
    agent.say(trial_line(command))
    end = read_end(agent.hear("ended"))
    assert "/bin/sh ended with 9 before it started this rank" in str(end.ranks[0].problem)
    assert "no route to cn7" in str(end.ranks[0].problem)


def test_a_rank_that_fails_ends_the_others_and_what_started_them(agent, door):
    waits = "import threading; threading.Event().wait()"
    script = as_mpirun(door, "wait $second")
    agent.start(started_by(agent, script, door, FAILS, waits))
    end = read_end(agent.hear("ended"))
    assert (end.cause, end.ranks[0].exit_code) == ("rank-failed", 7)
    assert (end.ranks[1].stopped, end.leftovers) == (True, 0)


def test_what_the_engine_had_only_begun_to_start_is_not_left_behind_by_the_ranks(agent, door):
    os.mkfifo(agent.folder / "ready")
    late = f"({DOOR}={door}; trap '' TERM; echo now > ready; exec sleep 600) & read word < ready"
    waits = "import threading; threading.Event().wait()"
    agent.start(started_by(agent, f"{late}; {as_mpirun(door, 'wait')}", door, FAILS, waits))
    end = read_end(agent.hear("ended"))
    assert (end.cause, end.leftovers, end.survivors) == ("rank-failed", 0, 0)


def test_what_a_rank_left_behind_counts_when_an_engine_started_it(agent, door):
    script = as_mpirun(door, "wait $second")
    fork = "import os, time\nif os.fork(): raise SystemExit(7)\nos.setsid(); time.sleep(600)"
    waits = "import threading; threading.Event().wait()"
    agent.start(started_by(agent, script, door, fork, waits))
    end = read_end(agent.hear("ended"))
    assert (end.cause, end.leftovers, end.survivors) == ("rank-failed", 1, 0)
