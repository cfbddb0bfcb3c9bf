"""The kernel's queues say for whom ranks that hang were waiting."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from harness.agent.connections import rank_connections
from harness.ranks.stuck_ranks import who_waited

_DEAF = """
import socket, sys
made = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(flush=True)
sys.stdin.read()
"""
HOSTS = {0: "h1", 1: "h2"}


@dataclass
class Peers:
    """This process as rank 0, which has sent, and one as rank 1, which does not read."""

    other: subprocess.Popen[str]

    def told(self) -> str:
        return who_waited(rank_connections({0: os.getpid(), 1: self.other.pid}), HOSTS)


@pytest.fixture
def peers() -> Iterator[Peers]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        other = subprocess.Popen(
            [sys.executable, "-c", _DEAF, port],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        connection, _ = server.accept()
        assert other.stdout is not None
        other.stdout.readline()
        with connection, other:
            connection.sendall(bytes(1000))
            yield Peers(other)
            other.kill()


def test_who_leaves_unread_what_came_was_waited_for(peers):
    assert peers.told() == (
        "Rank 0 on h1 waited for rank 1 on h2, which had not read the 1,000 bytes that had come "
        "from there."
    )


def test_a_stopped_process_is_to_blame_for_all(peers):
    peers.other.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, peers.other.pid, os.WSTOPPED | os.WNOWAIT)
    assert peers.told() == "Rank 0 on h1 waited for rank 1 on h2, which was stopped."
    peers.other.send_signal(signal.SIGCONT)


def test_what_is_sent_again_and_again_names_the_link():
    def end(local: str, remote: str, **queues: int) -> dict[str, object]:
        return {"local": local, "remote": remote, "unsent": 0, "unread": 0, "again": 0, **queues}

    waits = (
        {
            "rank": 0,
            "stopped": False,
            "connections": [end("10.0.0.1:9", "10.0.0.2:8", unsent=65536, again=7)],
        },
        {"rank": 1, "stopped": False, "connections": [end("10.0.0.2:8", "10.0.0.1:9")]},
    )
    assert who_waited(waits, HOSTS) == (
        "The link between rank 0 on h1 and rank 1 on h2 stands still: rank 1 waited for rank 0, "
        "whose last 65,536 bytes to it were sent again and never acknowledged."
    )


def test_connections_to_others_than_ranks_name_nobody():
    mine = {"local": "10.0.0.1:9", "remote": "10.0.0.9:80", "unsent": 9, "unread": 0, "again": 3}
    waits = ({"rank": 0, "stopped": False, "connections": [mine]},)
    assert who_waited(waits, HOSTS) == ""


def test_what_has_ended_is_left_out():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert rank_connections({0: ended.pid}) == ()
