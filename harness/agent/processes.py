"""Find and end processes: adopt orphans, reap them, kill the ones left over."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from harness.worker.place import TOKEN

_SET_CHILD_SUBREAPER = 36  # prctl(2)
_SWEEP_S = 5.0


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (prctl(2), Linux >= 3.4)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become a child sub-reaper")


def mark(token: str, *, prefix: bool = False) -> bytes:
    """Give a token's bytes as in an environment block; a prefix also finds longer tokens."""
    return f"{TOKEN}={token}".encode() + (b"" if prefix else b"\0")


def carriers(wanted: bytes) -> list[int]:
    """List the processes whose environment carries a mark; those of other users are not seen."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208  names only, in an agent that starts fast
        if name.isdigit():
            with suppress(OSError):  # ended meanwhile, or somebody else's
                descriptor = os.open(f"/proc/{name}/environ", os.O_RDONLY)
                try:
                    if wanted in b"\0" + _all(descriptor):
                        found.append(int(name))
                finally:
                    os.close(descriptor)
    me = os.getpid()
    return [pid for pid in found if pid != me]


def _all(descriptor: int) -> bytes:
    data = b""
    while chunk := os.read(descriptor, 1 << 16):
        data += chunk
    return data


def _children() -> list[int]:
    """List the living children of this process: orphans keep no other trace if they scrub it."""
    me = os.getpid()
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208  as above
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                state, parent = file.read().rpartition(b")")[2].split()[:2]
                if int(parent) == me and state != b"Z":
                    found.append(int(name))
    return found


def reap() -> bool:
    """Collect ended children; say whether any child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        return False
    return True


@dataclass(frozen=True)
class Swept:
    """What a sweep killed, and what it could not."""

    killed: int
    survivors: int


def sweep(token: str, *, expected: Callable[[int], bool] = lambda _: False) -> Swept:
    """Kill what a trial left behind; call it when all of the trial's ranks are reaped.

    Those that are expected were about to end: killed, they do not count. A sub-reaper's
    descendants cannot escape it: once it has no child, nothing is left, which one system call
    tells. Only else is /proc searched.
    """
    counted: set[int] = set()
    end = time.monotonic() + _SWEEP_S
    while reap():
        victims = {*carriers(mark(token)), *_children()}
        counted |= {pid for pid in victims if not expected(pid)}
        kill(victims, until=end)
        if time.monotonic() > end:
            return Swept(len(counted), len(victims))
    return Swept(len(counted), 0)


def sweep_marked(wanted: bytes) -> Swept:
    """Kill the processes that carry a mark, whoever their parent is now."""
    seen: set[int] = set()
    end = time.monotonic() + _SWEEP_S
    while victims := set(carriers(wanted)):
        seen |= victims
        kill(victims, until=end)
        if time.monotonic() > end:
            return Swept(len(seen), len(victims))
    return Swept(len(seen), 0)


def kill(pids: set[int], *, until: float) -> bool:
    """Kill processes and wait until they are gone or the time is up; True if all went."""
    waiting = select.poll()
    open_descriptors = set()
    for pid in pids:
        with suppress(ProcessLookupError):  # gone already
            descriptor = os.pidfd_open(pid)
            open_descriptors.add(descriptor)
            waiting.register(descriptor, select.POLLIN)
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    try:
        while open_descriptors:
            left_s = until - time.monotonic()
            gone = waiting.poll(max(0.0, left_s) * 1000)
            if not gone:
                return False
            for descriptor, _ in gone:
                waiting.unregister(descriptor)
                open_descriptors.discard(descriptor)
                os.close(descriptor)
    finally:
        for descriptor in open_descriptors:
            os.close(descriptor)
    return True
