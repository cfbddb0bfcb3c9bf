"""This file compares two real clocks: one host in a time and network of its own, with slow ways."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.agent.clock import answer, ask
from harness.errors import Unavailable
from harness.stats.clock import ClockLine, Exchange, quickest
from tests.needs import missing, program

EXCHANGES = int(os.environ.get("BAKEOFF_CLOCK_EXCHANGES", "10"))
SHIFT_S = 54_321
DIRECT = ("10.99.0.2", "47810")
RELAYED = ("10.99.0.1", "47811")
CLOCK = (sys.executable, "-m", "harness.agent.clock")


@contextmanager
def two_hosts() -> Iterator[tuple[int, int]]:
    """Make two network namespaces with a cable; the second's monotonic clock is shifted."""
    if os.geteuid() != 0:
        missing("the right to make namespaces", "run as root")
    ip = program("ip", package="iproute2")
    hosts: list[subprocess.Popen[bytes]] = []
    try:
        for shifted in ((), ("--time", "--monotonic", str(SHIFT_S))):
            argv = ["unshare", "--net", *shifted, "--fork", "--kill-child", "cat"]
            host = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            hosts.append(host)
        pids = [_inside(host) for host in hosts]
        names = [f"bkf{os.getpid() % 100000}{side}" for side in "ab"]
        setup = [[ip, "link", "add", names[0], "type", "veth", "peer", "name", names[1]]]
        for side, (name, pid) in enumerate(zip(names, pids, strict=True)):
            inside = ["nsenter", "--net", "--target", str(pid)]
            setup += [
                [ip, "link", "set", name, "netns", str(pid)],
                [*inside, ip, "address", "add", f"10.99.0.{side + 1}/24", "dev", name],
                [*inside, ip, "link", "set", name, "up"],
                [*inside, ip, "link", "set", "lo", "up"],
            ]
        for command in setup:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                missing(f"namespaces with a cable ({done.stderr.strip()})", "load the module veth")
        yield pids[0], pids[1]
    finally:
        for host in hosts:
            host.communicate()


def _inside(host: subprocess.Popen[bytes]) -> int:
    """Wait until the host stands, and give the process that lives in it."""
    assert host.stdin is not None
    assert host.stdout is not None
    host.stdin.write(b"up\n")
    host.stdin.flush()
    if host.stdout.readline() != b"up\n":
        missing("time and network namespaces", "a kernel of 5.6 or later")
    children = subprocess.run(
        ["pgrep", "--parent", str(host.pid)], capture_output=True, text=True, check=True
    )
    return int(children.stdout.split()[0])


def entered(pid: int, *kinds: str) -> list[str]:
    return ["nsenter", *(f"--{kind}" for kind in kinds), "--target", str(pid)]


RELAY = """
import select, socket, sys, time
there, back = float(sys.argv[1]), float(sys.argv[2])
front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
front.bind(("10.99.0.1", 47811))
behind = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
behind.connect(("10.99.0.2", 47810))
print("ready", flush=True)
while True:
    ready, _, _ = select.select([front, behind, 0], [], [])
    if front in ready:
        data, asker = front.recvfrom(256)
        time.sleep(there)
        behind.send(data)
    if behind in ready:
        data = behind.recv(256)
        time.sleep(back)
        front.sendto(data, asker)
    if 0 in ready:
        break
"""
"""A way that is slower in one direction: kernels without netem have no other."""


@contextmanager
def standing(argv: list[str]) -> Iterator[None]:
    """Run something that says when it is ready, and ends when its input closes."""
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.communicate()


@pytest.mark.parametrize(
    ("there", "back"), [(0.0, 0.0), (0.004, 0.001)], ids=["quick", "one way four times slower"]
)
def test_the_true_offset_is_always_within_the_reported_bound(there: float, back: float) -> None:
    asking = [*CLOCK, "ask", *(RELAYED if there else DIRECT), "key", str(EXCHANGES), "0.01"]
    way = [sys.executable, "-c", RELAY, str(there), str(back)]
    with (
        two_hosts() as (here, other),
        standing([*entered(other, "net", "time"), *CLOCK, "answer", DIRECT[1], "key"]),
        standing([*entered(here, "net"), *way]),
    ):
        asked = subprocess.run(
            [*entered(here, "net"), *asking], capture_output=True, text=True, check=True
        )
    told = json.loads(asked.stdout)
    bursts = [[Exchange(**one) for one in burst] for burst in told["exchanges"]]
    best = [quickest(burst) for burst in bursts]
    line = ClockLine(**told["line"])
    truth = SHIFT_S * 1e9
    assert len(best) == EXCHANGES
    assert [one for one in best if abs(one.offset_ns - truth) > one.bound_ns] == []
    assert all(abs(line.ahead_ns(one.middle_ns) - truth) <= line.bound_ns for one in best)
    assert min(one.round_trip_ns for one in best) >= (there + back) * 1e9


def test_who_does_not_know_the_key_is_not_answered() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.connect(listener.getsockname())
            stranger.send(bytes(28))
            answer(listener, b"key")
            stranger.setblocking(False)
            with pytest.raises(BlockingIOError):
                stranger.recv(64)


def test_where_nobody_answers_that_is_said() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    with pytest.raises(Unavailable, match="told its clock"):
        ask(address, b"key", count=2)
