"""Lock files, alone or with other readers, and tell who holds a lock; a crash releases it.

A file system without locks, as Lustre is unless told otherwise, refuses nobody; there a lock by
name goes by the name, as far as this machine can tell whether that process lives.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

_LOOKS, _LOOK_S = 5, 0.01
_FLOCK = re.compile(r"FLOCK +ADVISORY +WRITE +([0-9]+) +[0-9a-f]+:[0-9a-f]+:([0-9]+) ")
_MOST = 4096
"""Bytes of a holder's name."""


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock; unknown while it is just writing its name."""

    pid: int | None = None
    host: str | None = None
    since_wall_ns: int | None = None

    def __str__(self) -> str:
        if self.pid is None:
            return "another bakeoff process"
        return f"the bakeoff process {self.pid} on {self.host}"


def take(file: IO[Any] | int, *, alone: bool = True, wait: bool = False) -> bool:
    """Lock an open file until it is closed; give False if another process holds it."""
    return _lock(file, alone=alone, wait=wait) is not False


def is_free(file: IO[Any]) -> bool:
    """Whether no other process holds a lock; False where the file system has no locks."""
    return _lock(file, alone=True, wait=False) is True


@contextmanager
def held_by_name(file: int) -> Iterator[bool]:
    """Hold a lock alone, with this process's name in its file; give False if another one does."""
    if not _take_from_lookers(file) or _is_held_by_its_word(file):
        yield False
        return
    own = Holder(os.getpid(), socket.gethostname(), time.time_ns())
    os.ftruncate(file, 0)
    os.pwrite(file, json.dumps(asdict(own)).encode(), 0)
    try:
        yield True
    finally:
        with suppress(OSError):  # a disk that fails now has failed what matters before
            os.ftruncate(file, 0)


def holder(file: int) -> Holder | None:
    """Say who holds a lock by name, if anybody does."""
    locked = _lock(file, alone=False, wait=False)
    text = os.pread(file, _MOST, 0)
    if locked:
        return None  # it was free; what its last holder left of a name means nothing
    try:
        return Holder(**json.loads(text))
    except (ValueError, TypeError):
        return None if locked is None else Holder()


def holders_by_kernel(file: int) -> set[int]:
    """Name the processes of this machine that the kernel says hold a file's lock alone."""
    inode = os.fstat(file).st_ino
    lines = Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines()
    found = (_FLOCK.search(line) for line in lines)
    return {int(one[1]) for one in found if one is not None and int(one[2]) == inode}


def _is_held_by_its_word(file: int) -> bool:
    """Tell, where the file system has no locks, whether a process of this machine is named."""
    if _lock(file, alone=True, wait=False) is not None:
        return False  # it has locks, and this process has just got one
    named = holder(file)
    if named is None or named.pid is None or named.host != socket.gethostname():
        return False
    return named.pid != os.getpid() and Path(f"/proc/{named.pid}").exists()


def _take_from_lookers(descriptor: int) -> bool:
    """Take a lock although others look who holds it, for which each takes it for a moment."""
    for _ in range(_LOOKS):
        if take(descriptor):
            return True
        time.sleep(_LOOK_S)
    return False


def _lock(file: IO[Any] | int, *, alone: bool, wait: bool) -> bool | None:
    """Lock an open file: True, False where another process holds it, None without locks."""
    how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    try:
        fcntl.flock(file, how if wait else how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
