"""Measure how many of a trial's cores others kept busy during one of its turns.

All that ran on the cores (proc(5), ``/proc/stat``), and what the host took of them, less what the
ranks used with their descendants, and Bakeoff's own processes. Read at both ends of a turn, from
files that stay open; what the ranks used comes from their CPU clocks (``clock_getres(2)``, the
clock of another process), which count nanoseconds where ``/proc`` counts ticks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import sqrt

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_USER, _NICE, _SYSTEM, _STEAL = 1, 2, 3, 8
_LONGEST_LINE = 256
"""A processor's name and ten numbers, in bytes."""
_UNSEEN_TICKS = 3.0
"""What rounding to ticks may hide or add at both ends, for one core; it grows as a root."""


class ForeignUse:
    """The use of a trial's cores, turn after turn."""

    def __init__(self, cpus: Iterable[int]) -> None:
        self._cpus = frozenset(cpus)
        self._names = {b"cpu%d" % cpu for cpu in self._cpus}
        self._files: dict[str, int] = {}
        self._ranks: Sequence[int] = ()
        self._helpers: Sequence[int] = ()
        self._family: set[int] = set()
        self._began_ns = 0
        self._before: float | None = None

    @property
    def cores(self) -> int:
        """How many cores they are."""
        return len(self._cpus)

    def begin(self, ranks: Sequence[int], helpers: Iterable[int]) -> None:
        """Read at the begin of a turn; ``helpers`` are Bakeoff's own processes beside this one."""
        if not self._family:
            self._family = _family(ranks)
        self._ranks = ranks
        own = (os.getpid(), *helpers)
        self._helpers = [pid for pid in own if _may_run_on(pid, self._cpus)]
        self._began_ns = time.monotonic_ns()
        self._before = self._others_s()

    def end(self) -> tuple[float | None, float]:
        """Give the cores that others kept busy since the begin, and how many of them are in doubt.

        None where the kernel does not tell.
        """
        seconds = max(1e-9, (time.monotonic_ns() - self._began_ns) / 1e9)
        self._family |= _family(self._ranks)  # also those that were started meanwhile
        after, before = self._others_s(), self._before
        doubt = _UNSEEN_TICKS * _TICK_S * sqrt(self.cores) / seconds
        if after is None or before is None:
            return None, doubt
        return max(0.0, (after - before) / seconds), doubt

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def _others_s(self) -> float | None:
        """Add up the seconds of the cores that neither the ranks nor Bakeoff used."""
        try:
            # Processors come first: a line for all, then one for each that is on.
            stat = self._read("/proc/stat", (max(self._cpus, default=0) + 2) * _LONGEST_LINE)
        except OSError:
            return None
        ticks = 0
        for line in stat.split(b"\n"):
            if not line.startswith(b"cpu"):
                break
            fields = line.split()
            if fields[0] in self._names:
                ticks += sum(int(fields[at]) for at in (_USER, _NICE, _SYSTEM, _STEAL))
        own_s = sum(map(_cpu_s, (*self._family, *self._helpers)))
        return ticks * _TICK_S - own_s - sum(map(self._reaped_s, self._ranks))

    def _reaped_s(self, pid: int) -> float:
        """Read what the children used that a process has reaped."""
        with suppress(OSError):
            fields = self._read(f"/proc/{pid}/stat", 1 << 12).rpartition(b")")[2].split(None, 15)
            return (int(fields[13]) + int(fields[14])) * _TICK_S
        return 0.0

    def _read(self, path: str, most: int) -> bytes:
        """Read the beginning of a file as it is now; it stays open: each turn reads it twice."""
        if path not in self._files:
            self._files[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._files[path], most, 0)


def _cpu_s(pid: int) -> float:
    """Read a process's CPU clock; of one that has ended its parent tells."""
    with suppress(OSError):
        return time.clock_gettime(~pid << 3 | 2)  # MAKE_PROCESS_CPUCLOCK of the kernel and of glibc
    return 0.0


def _family(ranks: Iterable[int]) -> set[int]:
    """List processes and their descendants; without CONFIG_PROC_CHILDREN no descendant is seen."""
    found: set[int] = set()
    waiting = list(ranks)
    while waiting:
        pid = waiting.pop()
        if pid in found:
            continue
        found.add(pid)
        with suppress(OSError):  # it has ended
            for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  names only, each turn
                name = f"/proc/{pid}/task/{task}/children"
                with suppress(OSError), open(name, "rb", buffering=0) as file:  # noqa: PTH123
                    waiting += map(int, file.read().split())
    return found


def _may_run_on(pid: int, cpus: frozenset[int]) -> bool:
    with suppress(OSError):
        return not cpus.isdisjoint(os.sched_getaffinity(pid))
    return False
