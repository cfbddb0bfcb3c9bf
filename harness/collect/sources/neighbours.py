"""Look who else uses the processor: every process but the ranks' and the observer's.

Source: proc_pid_stat(5). A look at all processes costs milliseconds on a full node, so it is rare;
what began and ended between two looks is missed. Of a program's command line no more is kept than
its name and its first argument's: arguments may hold what nobody should read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.store.samples.samples_format import Channel
from harness.worker.redaction.redact import redact_text

HZ = 0.2
MOST_HZ = 0.2
BLOCKS = True  # a command line is read under a lock that its process may hold

SHORTEST_S = 1.0
"""Looks nearer to each other than this say little."""
_TOP = 3
_NOTABLE = 0.02
"""Cores that a process must have used to be named."""
_KERNEL = 0x00200000
"""PF_KTHREAD: a thread of the kernel's own (include/linux/sched.h)."""


def open(observed: Observed) -> Neighbours:  # noqa: A001 - the contract's name
    """Open the source."""
    return Neighbours(observed)


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 12)
    finally:
        os.close(descriptor)


class _Process(NamedTuple):
    parent: int
    ticks: int
    born: bytes
    """When it began: tells it from another one with its number."""
    name: str
    is_kernel: bool


class Neighbours:
    """CPU time of everybody else, and who used most of it between the last two looks."""

    def __init__(self, observed: Observed) -> None:
        self.channels = (
            Channel(
                "neighbours.cpu",
                "s",
                "counter",
                "node",
                1 / os.sysconf("SC_CLK_TCK"),
                meaning="of processes seen at two looks, without the ranks and the agent",
            ),
            Channel(
                "neighbours.kernel",
                "s",
                "counter",
                "node",
                1 / os.sysconf("SC_CLK_TCK"),
                meaning="of that, threads of the kernel",
            ),
        )
        self._proc = observed.root / "proc"
        self._own = {os.getpid(), *observed.ranks.values()}
        self._used = 0
        self._kernel = 0
        self._told: Mapping[str, Any] | None = None
        self._looked_ns = time.monotonic_ns()
        self._seen = self._look()
        if not self._seen:
            raise Unavailable(f"{self._proc} shows no processes")

    def _look(self) -> dict[int, _Process]:
        found = {}
        for name in os.listdir(self._proc):  # noqa: PTH208 names only, hundreds of them
            if name.isdigit():
                with suppress(OSError):  # it has ended
                    text = _read(f"{self._proc}/{name}/stat")
                    begin, _, rest = text.rpartition(b")")
                    fields = rest.split(None, 20)
                    command = begin.partition(b"(")[2].decode(errors="replace")
                    ticks = int(fields[11]) + int(fields[12])
                    is_kernel = bool(int(fields[6]) & _KERNEL)
                    found[int(name)] = _Process(
                        int(fields[1]), ticks, fields[19], command, is_kernel
                    )
        return found

    def _is_own(self, pid: int, among: Mapping[int, _Process]) -> bool:
        """Tell whether a process descends from this one or from a rank.

        What was read one after the other may make a circle of parents, where numbers are used anew.
        """
        for _ in among:
            process = among.get(pid)
            if pid in self._own or process is None:
                break
            pid = process.parent
        return pid in self._own

    def read(self) -> list[int]:
        """Look again, unless that was just done."""
        now = time.monotonic_ns()
        if now - self._looked_ns < SHORTEST_S * 1e9:
            return [self._used, self._kernel]
        seen = self._look()
        grown = []
        for pid, process in seen.items():
            before = self._seen.get(pid)
            if before is not None and before.born == process.born:
                ticks = process.ticks - before.ticks
                if ticks > 0 and not self._is_own(pid, seen):
                    grown.append((ticks, pid))
        self._used += sum(ticks for ticks, _ in grown)
        self._kernel += sum(ticks for ticks, pid in grown if seen[pid].is_kernel)
        seconds = (now - self._looked_ns) / 1e9
        top = [
            [pid, self._name(pid, seen[pid].name), round(cores, 3)]
            for ticks, pid in sorted(grown, reverse=True)[:_TOP]
            if (cores := ticks * self.channels[0].scale / seconds) >= _NOTABLE
        ]
        self._told = {"seconds": seconds, "top": top} if top else None
        self._seen, self._looked_ns = seen, now
        return [self._used, self._kernel]

    def _name(self, pid: int, otherwise: str) -> str:
        """Give a program's name and its first argument's, or its module's."""
        try:
            data = _read(f"{self._proc}/{pid}/cmdline")
        except OSError:
            return otherwise
        program, *arguments = data.split(b"\0")[:3]
        what = arguments[1:] if arguments[:1] == [b"-m"] else arguments[:1]
        words = [Path(word.decode(errors="replace")).name for word in (program, *what)]
        return redact_text(" ".join(words)).strip()[:60] or otherwise

    def news(self) -> Sequence[Mapping[str, Any]]:
        """Tell once who used most between the last two looks."""
        busiest, self._told = self._told, None
        return () if busiest is None else (busiest,)

    def close(self) -> None:
        """Nothing is held open."""
