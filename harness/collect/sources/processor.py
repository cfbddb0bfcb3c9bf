"""Read what each core did, how many tasks wanted to run, and how often they switched.

Source: proc_pid_stat(5) and proc_stat(5). Guest time is part of user time there and is not added.
"""

from __future__ import annotations

import os

from harness.collect.open_files import hold
from harness.collect.sampler import Observed
from harness.store.samples.samples_format import NOT_READ, Channel

HZ = 10.0
BLOCKS = False

_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_TOTALS = {
    b"ctxt": Channel("switches", "1", "counter", "node"),
    b"processes": Channel("forks", "1", "counter", "node"),
    b"procs_running": Channel("run-queue", "1", "gauge", "node", meaning="running or ready to"),
    b"procs_blocked": Channel("blocked", "1", "gauge", "node", meaning="waiting for a disk"),
}


def open(observed: Observed) -> Processor:  # noqa: A001 - the contract's name
    """Open the source."""
    return Processor(observed)


class Processor:
    """Jiffies of each core since boot, and the scheduler's totals."""

    lasts = True

    def __init__(self, observed: Observed) -> None:
        self._file = hold(observed.root / "proc/stat")
        tick = 1 / os.sysconf("SC_CLK_TCK")
        self._cores = [line.split(None, 1)[0] for line in self._lines()]
        self._at = {name: index for index, name in enumerate(self._cores)}
        self.channels = (
            *(
                Channel(f"cpu.{state}", "s", "counter", f"core:{core[3:].decode()}", tick)
                for core in self._cores
                for state in _STATES
            ),
            *_TOTALS.values(),
        )

    def _lines(self) -> list[bytes]:
        head = self._file.read().partition(b"\nintr ")[0]
        return head.split(b"\n")[1:]

    def read(self) -> list[int]:
        """Read all counters in one go."""
        head, _, tail = self._file.read().partition(b"\nintr ")
        lines = head.split(b"\n")[1:]
        values: list[int] = []
        width = len(_STATES)
        if len(lines) == len(self._cores):
            for line in lines:
                values += map(int, line.split(None, width + 1)[1 : width + 1])
        else:  # a core went off line or came back
            values = [NOT_READ] * (width * len(self._cores))
            for line in lines:
                name, *fields = line.split()
                if (index := self._at.get(name)) is not None:
                    values[width * index : width * (index + 1)] = map(int, fields[:width])
        # intr's line of a thousand numbers ends where the totals begin
        totals = {}
        for line in tail.partition(b"\n")[2].split(b"\n"):
            name, _, number = line.partition(b" ")
            if name in _TOTALS:
                totals[name] = int(number)
        return [*values, *(totals.get(name, NOT_READ) for name in _TOTALS)]

    def close(self) -> None:
        """Close what was opened."""
        self._file.close()
