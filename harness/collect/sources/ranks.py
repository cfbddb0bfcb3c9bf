"""Read the process tree of each rank: CPU time, memory, threads, what it read and wrote.

Source: proc_pid_stat(5), proc_pid_io(5), proc_pid_status(5). Everything there counts from a
process's birth, its reaped children included, so that the sum over a tree only falls when a process
leaves it unreaped; what such a one had used by then is kept.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness.collect.open_files import OpenFile
from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.store.samples.samples_format import ENDED, UNSUPPORTED, Channel

HZ = 10.0
BLOCKS = False

_LOOK_EVERY = 10
"""Readings between two looks for new processes."""
_COUNT_EVERY = 20
"""Readings between two counts over all threads, of which a framework may have hundreds."""
_IO = (b"rchar", b"wchar", b"syscr", b"syscw", b"read_bytes", b"write_bytes")


def open(observed: Observed) -> Ranks:  # noqa: A001 - the contract's name
    """Open the source."""
    return Ranks(observed)


class Ranks:
    """The trees of all ranks of this node."""

    def __init__(self, observed: Observed) -> None:
        if not observed.ranks:
            raise Unavailable("no rank runs here")
        self._trees = [_Tree(observed.root / "proc", pid) for pid in observed.ranks.values()]
        tick = 1 / os.sysconf("SC_CLK_TCK")
        page = float(os.sysconf("SC_PAGE_SIZE"))
        self.channels = tuple(
            channel
            for rank in observed.ranks
            for channel in (
                Channel("rank.user", "s", "counter", f"rank:{rank}", tick),
                Channel("rank.system", "s", "counter", f"rank:{rank}", tick),
                Channel("rank.faults.major", "1", "counter", f"rank:{rank}"),
                Channel("rank.resident", "bytes", "gauge", f"rank:{rank}", page),
                Channel("rank.threads", "1", "gauge", f"rank:{rank}"),
                Channel("rank.processes", "1", "gauge", f"rank:{rank}"),
                Channel("rank.read", "bytes", "counter", f"rank:{rank}", meaning="by calls"),
                Channel("rank.written", "bytes", "counter", f"rank:{rank}", meaning="by calls"),
                Channel("rank.reads", "1", "counter", f"rank:{rank}", meaning="calls"),
                Channel("rank.writes", "1", "counter", f"rank:{rank}", meaning="calls"),
                Channel("rank.disk-read", "bytes", "counter", f"rank:{rank}", meaning="fetched"),
                Channel("rank.disk-written", "bytes", "counter", f"rank:{rank}", meaning="dirtied"),
                Channel(
                    "rank.preempted",
                    "1",
                    "counter",
                    f"rank:{rank}",
                    meaning="involuntary switches of all threads, as of the last look",
                ),
            )
        )

    def read(self) -> list[int]:
        """Read every tree."""
        return [value for tree in self._trees for value in tree.read()]

    def close(self) -> None:
        """Close what was opened."""
        for tree in self._trees:
            tree.close()


class _Process:
    """One process, its files held open: no other can be taken for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stat = OpenFile(folder / "stat")
        self.io: OpenFile | None = None
        try:
            self.io = OpenFile(folder / "io")
            self.io.read()
        except OSError:  # another user's: only the process itself may look
            self.io = None

    def children(self) -> list[int]:
        """Name the children of all threads; without CONFIG_PROC_CHILDREN none is seen."""
        found: list[int] = []
        try:
            for task in os.listdir(self.folder / "task"):  # noqa: PTH208 names only, often
                descriptor = os.open(self.folder / "task" / task / "children", os.O_RDONLY)
                try:
                    found += map(int, os.read(descriptor, 1 << 16).split())
                finally:
                    os.close(descriptor)
        except OSError:
            return found
        return found

    def preempted(self) -> int:
        """Add up the involuntary switches of the threads that live."""
        total = 0
        try:
            for task in os.listdir(self.folder / "task"):  # noqa: PTH208 as above
                descriptor = os.open(self.folder / "task" / task / "status", os.O_RDONLY)
                try:
                    data = os.read(descriptor, 1 << 12)
                finally:
                    os.close(descriptor)
                total += int(data.rpartition(b"nonvoluntary_ctxt_switches:")[2].split(None, 1)[0])
        except (OSError, ValueError, IndexError):
            return total
        return total

    def close(self) -> None:
        """Close what was opened."""
        self.stat.close()
        if self.io is not None:
            self.io.close()


class _Tree:
    """A rank's process and its descendants."""

    def __init__(self, proc: Path, pid: int) -> None:
        self._proc = proc
        self._members: dict[int, _Process] = {}
        self._readings = 0
        self._preempted = 0
        self._totals = [0] * (3 + len(_IO) + 1)
        self._lost = [0] * len(self._totals)
        self._ended = not self._join(pid)
        self._pid = pid

    def _join(self, pid: int) -> bool:
        if pid in self._members:
            return True
        try:
            self._members[pid] = _Process(self._proc / str(pid))
        except OSError:
            return False
        return True

    def _look(self) -> None:
        """Take in new descendants."""
        waiting = [self._pid]
        while waiting:
            member = self._members.get(waiting.pop())
            if member is None:
                continue
            waiting += [child for child in member.children() if self._join(child)]

    def read(self) -> list[int]:
        """Read every member; of a rank that has ended, what it used since is known to nobody."""
        if not self._ended and self._readings % _LOOK_EVERY == 0:
            self._look()
        if not self._ended and self._readings % _COUNT_EVERY == 0:
            self._preempted = sum(member.preempted() for member in self._members.values())
        self._readings += 1
        user = system = faults = resident = threads = 0
        moved = [0] * len(_IO)
        has_io = True
        for pid, member in list(self._members.items()):
            try:
                # the name may hold spaces and brackets: fields are counted from its last one
                fields = member.stat.read().rpartition(b")")[2].split(None, 22)
                io = member.io.read().split() if member.io is not None else None
            except OSError:
                member.close()
                del self._members[pid]
                continue
            # user time, system time, and the same of reaped children
            times = [int(text) for text in fields[11:15]]
            user += times[0] + times[2]
            system += times[1] + times[3]
            faults += int(fields[9]) + int(fields[10])
            resident += int(fields[21])
            threads += int(fields[17])
            if io is None:
                has_io = False
            else:
                moved = [total + int(text) for total, text in zip(moved, io[1::2], strict=False)]
        user, system, faults, *moved, preempted = self._kept(
            [user, system, faults, *moved, self._preempted]
        )
        self._ended = self._ended or not self._members
        if self._ended:
            return [ENDED] * (6 + len(moved) + 1)
        if not has_io:
            moved = [UNSUPPORTED] * len(moved)
        return [user, system, faults, resident, threads, len(self._members), *moved, preempted]

    def _kept(self, sums: list[int]) -> list[int]:
        """Add what members that left unreaped had used: a sum that falls has lost one."""
        for at, value in enumerate(sums):
            missing = self._totals[at] - value - self._lost[at]
            if missing > 0:
                self._lost[at] += missing
        self._totals = [value + lost for value, lost in zip(sums, self._lost, strict=True)]
        return self._totals

    def close(self) -> None:
        """Close what was opened."""
        for member in self._members.values():
            member.close()
        self._members.clear()
