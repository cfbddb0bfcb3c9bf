"""The library that lets one modifying call fail, as a session and all that it starts carry it.

It is preloaded into this program, its forks, the agent and the ranks, and does what a control file
says that all of them map: ``fault_injector.c``.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.gauntlet import command

SOURCE = Path(__file__).with_name("fault_injector.c")
CONTROL = "FAULT_CONTROL"
TRACE = "FAULT_TRACE"
_LAYOUT = struct.Struct("=qqqqqq1024s64s1024s")


@dataclass(frozen=True)
class Call:
    """One modifying call of a run, known from one run to the next."""

    name: str
    path: str
    """Below the folder of runs; the random letters of a temporary file stand as HEX."""
    nth: int
    """Of the calls of this name with this path."""

    def __str__(self) -> str:
        return f"{self.name} {self.path} {self.nth}"


@dataclass(frozen=True)
class Fault:
    """Which call fails, and how."""

    call: Call
    error: int = errno.ENOSPC
    stays: bool = False
    """Whether every later call fails as well, as on a disk that stays full."""

    def __str__(self) -> str:
        return f"{errno.errorcode[self.error]}{' and ever after' if self.stays else ''}"


@dataclass(frozen=True)
class Counted:
    """What the injector counted."""

    calls: int
    failed: int


def built(folder: Path) -> dict[str, str]:
    """Compile the library into a folder; give the environment that has it preloaded."""
    library, control = folder / "injector.so", folder / "control"
    flags = ("-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror")
    subprocess.run(["cc", *flags, "-o", str(library), str(SOURCE), "-ldl"], check=True)
    control.write_bytes(bytes(_LAYOUT.size))
    return {CONTROL: str(control), "LD_PRELOAD": str(library)}


def preload() -> None:
    """Begin this program again with the library preloaded, unless it is."""
    if CONTROL in os.environ:
        command.remove_at_exit(str(Path(os.environ[CONTROL]).parent))
        return
    os.environ |= built(Path(tempfile.mkdtemp(prefix="gauntlet-injector-")))
    os.execv(sys.executable, sys.orig_argv)


class Injector:
    """The injector's control file."""

    def __init__(self, control: str) -> None:
        file = os.open(control, os.O_RDWR)
        self._memory = mmap.mmap(file, _LAYOUT.size)
        os.close(file)

    def arm(self, folder: Path, fault: Fault | None) -> None:
        """Count from 0 below a folder, and let a fault happen there."""
        nth, stays, error, name, path = 0, 0, 0, "", ""
        if fault is not None:
            nth, stays, error = fault.call.nth, int(fault.stays), fault.error
            name, path = fault.call.name, fault.call.path
        words = (str(folder).encode(), name.encode(), path.encode())
        self._memory[: _LAYOUT.size] = _LAYOUT.pack(nth, stays, error, 0, 0, 0, *words)

    def disarm(self) -> Counted:
        """Stop; give what happened."""
        _, _, _, calls, _, failed, *_ = _LAYOUT.unpack(self._memory[: _LAYOUT.size])
        self._memory[: _LAYOUT.size] = bytes(_LAYOUT.size)
        return Counted(calls, failed)


def told_apart(lines: Iterable[str]) -> Iterator[Call]:
    """Give the calls that a trace wrote down, each with how often the same came before."""
    seen = Counter[str]()
    for line in lines:
        seen[line] += 1
        name, _, path = line.partition(" ")
        yield Call(name, path, seen[line])
