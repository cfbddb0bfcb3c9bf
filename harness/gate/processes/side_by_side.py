"""Let lanes work side by side, each a process of its own, and hear what they find.

A lane takes one group of work after another. SIGINT or SIGTERM ends all lanes, and this process; a
lane that ends before its work costs what it had not told.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from harness.child_process import end_with_parent
from harness.errors import BakeoffError
from harness.machine import share
from harness.ranks.interrupts import Interrupts

_MOST = 8
_CORES = 2
"""A lane's framework computes in as many threads as there are cores, but for most of its time in
one: importing, compiling, stepping small layers."""
_BYTES = 6 << 30
"""What a reference of a large network and its framework take together."""

Say = Callable[[object], None]
Serve = Callable[[Iterator[Any], Say], None]
"""Works through groups, and says what it finds."""


def lanes(groups: int) -> int:
    """Say how many lanes have room here."""
    free = share.free_memory_bytes()
    cores = min(share.cpus(), share.cpu_quota() or share.cpus())
    room = _MOST if free is None else free // _BYTES
    return max(1, min(groups, _MOST, int(cores) // _CORES, room))


def heard(serve: Serve, groups: Sequence[Any], count: int) -> Generator[Any, None, None]:
    """Let lanes serve groups, and give what they say; raise what a person did wrong."""
    waiting, interrupts = deque(groups), Interrupts()
    working: dict[Connection, BaseProcess] = {}
    with interrupts.installed():
        try:
            for _ in range(count):
                ours, process = _started(serve)
                working[ours] = process
                _send(ours, waiting.popleft())
            while working:
                for one in wait([*working, interrupts.fileno()]):
                    if interrupts.count:
                        raise SystemExit(interrupts.exit_code)
                    if not isinstance(one, Connection):
                        interrupts.drain()
                        continue
                    try:
                        told = one.recv()
                    except (EOFError, ConnectionResetError):
                        working.pop(one).join()
                        continue
                    if isinstance(told, BakeoffError):
                        raise told
                    if told is not None:
                        yield told
                    else:
                        _send(one, waiting.popleft() if waiting else None)
            if interrupts.count:  # after the last was heard
                raise SystemExit(interrupts.exit_code)
        finally:
            for process in working.values():
                process.terminate()
            for process in working.values():
                process.join()


def _send(lane: Connection, group: Any) -> None:
    with suppress(BrokenPipeError):  # that it has ended is heard next
        lane.send(group)


def _started(serve: Serve) -> tuple[Connection, BaseProcess]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, serve))
    process.start()
    theirs.close()
    return ours, process


def _work(theirs: Connection, serve: Serve) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started the lanes ends them
    end_with_parent()
    try:
        serve(_asked(theirs), theirs.send)
    except BakeoffError as problem:
        theirs.send(problem)


def _asked(theirs: Connection) -> Iterator[Any]:
    """Give group after group; each further one is asked for."""
    group = theirs.recv()
    while group is not None:
        yield group
        theirs.send(None)
        group = theirs.recv()
