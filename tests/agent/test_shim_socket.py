from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.agent.protocol import STARTER, RankCommand, read_end, trial_line
from harness.agent.shim import DOOR, folder_here, new_door, socket_path

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
    return new_door()


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


FRAMED = """---------------------------------------------
mpirun was unable to launch the application:

Executable: /no/such
Node: cn7

while attempting to start process rank 0.
---------------------------------------------
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (FRAMED, "unable to launch the application: Executable: /no/such Node: cn7"),
        ("mpirun: unknown option\nType --help.\n", "mpirun: unknown option Type --help."),
    ],
)
def test_an_engine_s_own_words_say_why_it_starts_nothing(agent, door, said: str, told: str):
    script = f"cat >&2 <<'WORDS'\n{said}WORDS\nexit 1"
    agent.say(trial_line(started_by(agent, script, door, TELL, TELL)))
    assert str(read_end(agent.hear("ended")).ranks[0].problem).endswith(told)


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


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
SOMEBODY_ELSE = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
"""
LISTENS = f"""{SOMEBODY_ELSE}
os.mkdir(sys.argv[1], 0o755)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1] + "/shims")
os.chmod(sys.argv[1] + "/shims", 0o777)
listener.listen()
print("listening", flush=True)
connection, _ = listener.accept()
print(len(connection.recv(1 << 16)))
os.unlink(sys.argv[1] + "/shims"); os.rmdir(sys.argv[1])
"""
CONNECTS = f"""{SOMEBODY_ELSE}
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1] + "/shims")
except OSError as problem:
    print(problem.strerror)
"""


def shim(door: str, **environment: str) -> subprocess.Popen[str]:
    env = {"PATH": os.defpath, DOOR: door, **environment}
    return subprocess.Popen(SHIM.split(), env=env, stderr=subprocess.PIPE, text=True)


def test_a_shim_sends_the_engine_s_variables_and_no_other(tmp_path: Path):
    told = {"PMI_RANK": "0", "PMI_SIZE": "1", "SLURM_PROCID": "0"}
    secrets = {"SLURM_JWT": "s3cret", "AWS_SECRET_ACCESS_KEY": "s3cret", "HOME": "/home/ada"}
    with socket.socket(socket.AF_UNIX) as listener:
        door = str(tmp_path / "door")
        Path(folder_here(door)).mkdir()
        listener.bind(socket_path(folder_here(door)))
        listener.listen()
        with shim(door, **told, **secrets) as process:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as lines:
                assert json.loads(lines.readline()) == {"env": told}
                connection.sendall(b"7\n")
            assert process.wait() == 7


@as_root
def test_a_shim_tells_a_listener_of_another_user_nothing(door: str):
    argv = [sys.executable, "-c", LISTENS, folder_here(door)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "listening\n"
        with shim(door, PMI_RANK="0") as process:
            _, errors = process.communicate()
        assert process.returncode == 1
        assert (
            f"{folder_here(door)}/shims on {socket.gethostname()} belongs to another user" in errors
        )
        assert other.stdout.readline() == "0\n"


@as_root
def test_another_user_does_not_get_at_an_agent_that_waits(agent, door: str):
    os.mkfifo(agent.folder / "ready")
    script = f"echo now > ready; read word < ready; {as_mpirun(door, 'wait')}"
    agent.say(trial_line(started_by(agent, script, door, TELL, TELL)))
    assert (agent.folder / "ready").read_text() == "now\n"
    assert Path(folder_here(door)).stat().st_mode & 0o777 == 0o700
    other = subprocess.run(
        [sys.executable, "-c", CONNECTS, folder_here(door)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout == "Permission denied\n"
    (agent.folder / "ready").write_text("go\n")
    assert read_end(agent.hear("ended")).cause == "ended"
    assert not Path(folder_here(door)).exists()


def test_a_folder_that_somebody_made_before_the_agent_is_the_reason(agent, tmp_path: Path):
    folder = Path(folder_here(str(tmp_path / "door")))
    folder.mkdir()
    agent.say(trial_line(started_by(agent, "exit 0", str(tmp_path / "door"), TELL, TELL)))
    end = read_end(agent.hear("ended"))
    assert end.ranks[0].problem == f"cannot make {folder}: File exists"
