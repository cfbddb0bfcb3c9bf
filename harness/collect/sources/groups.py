"""Read the control groups above the ranks: use, limits and throttling, versions 1 and 2.

Source: kernel documentation, admin-guide/cgroup-v2.rst and cgroup-v1/, scheduler/sched-bwc.rst. The
quota that throttles may be set in any group above a process, so each one with a quota is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.collect.open_files import OpenFile
from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.machine.cgroup import NO_LIMIT, memberships
from harness.machine.small_files import read_small
from harness.store.samples.samples_format import UNSUPPORTED, Channel

HZ = 5.0
BLOCKS = False


def open(observed: Observed) -> Groups:  # noqa: A001 - the contract's name
    """Open the source."""
    return Groups(observed)


@dataclass(frozen=True)
class _File:
    """One file of a group, the channels in it, and how to read them."""

    held: OpenFile
    channels: tuple[Channel, ...]
    parse: Callable[[bytes], list[int]]


class Groups:
    """Every file of every group that says something about the ranks."""

    def __init__(self, observed: Observed) -> None:
        pid = next(iter(observed.ranks.values()), None)
        self._files: list[_File] = []
        for one in memberships(observed.root, "self" if pid is None else pid):
            found = _version2 if one.version == 2 else _version1
            for level, folder in enumerate(one.folders):
                self._files += found(folder, one.controllers, _scope(folder, observed.root), level)
        if not self._files:
            raise Unavailable("no control group of the ranks can be read")
        self.channels = tuple(channel for file in self._files for channel in file.channels)

    def read(self) -> list[int]:
        """Read every group; one that is removed with its trial is a gap."""
        values: list[int] = []
        for file in self._files:
            try:
                values += file.parse(file.held.read())
            except (OSError, ValueError):
                values += [UNSUPPORTED] * len(file.channels)
        return values

    def close(self) -> None:
        """Close what was opened."""
        for file in self._files:
            file.held.close()


def _scope(folder: Path, root: Path) -> str:
    return f"cgroup:/{folder.relative_to(root)}"


def _file(path: Path, channels: list[Channel], parse: Callable[[bytes], list[int]]) -> list[_File]:
    try:
        held = OpenFile(path)
        parse(held.read())
    except (OSError, ValueError):
        return []
    return [_File(held, tuple(channels), parse)]


def _pairs(names: list[str]) -> Callable[[bytes], list[int]]:
    """Read lines of "name number"."""
    wanted = [name.encode() for name in names]

    def parse(data: bytes) -> list[int]:
        pairs = dict(line.split(None, 1) for line in data.splitlines())
        return [int(pairs[name]) if name in pairs else UNSUPPORTED for name in wanted]

    return parse


def _limit(data: bytes) -> list[int]:
    """Read a number that may be "max"."""
    value = data.strip()
    if value == b"max" or int(value) >= NO_LIMIT or int(value) < 0:
        return [UNSUPPORTED]
    return [int(value)]


def _quota(data: bytes) -> list[int]:
    """Read "quota period" in microseconds as thousandths of a core."""
    quota, period = data.split()
    return [UNSUPPORTED] if quota == b"max" else [1000 * int(quota) // int(period)]


def _throttling(folder: Path, scope: str, name: str, scale: float) -> list[_File]:
    return _file(
        folder / "cpu.stat",
        [
            Channel("group.periods", "1", "counter", scope),
            Channel("group.throttled-periods", "1", "counter", scope),
            Channel("group.throttled", "s", "counter", scope, scale, meaning="summed over cores"),
        ],
        _pairs(["nr_periods", "nr_throttled", name]),
    )


def _version2(folder: Path, _controllers: frozenset[str], scope: str, level: int) -> list[_File]:
    """Read a group of version 2; above the ranks' own, only what limits."""
    files = []
    if level == 0:
        usage = Channel("group.cpu", "s", "counter", scope, 1e-6)
        files += _file(folder / "cpu.stat", [usage], _pairs(["usage_usec"]))
        current = Channel("group.memory", "bytes", "gauge", scope)
        files += _file(folder / "memory.current", [current], _limit)
    limit = read_small(folder / "memory.max")
    if limit not in ("", "max"):
        channel = Channel("group.memory-limit", "bytes", "gauge", scope)
        files += _file(folder / "memory.max", [channel], _limit)
    quota = read_small(folder / "cpu.max")
    if quota and not quota.startswith("max"):
        channel = Channel("group.quota", "cores", "gauge", scope, 1e-3)
        files += _file(folder / "cpu.max", [channel], _quota)
        files += _throttling(folder, scope, "throttled_usec", 1e-6)
    return files


def _version1(folder: Path, controllers: frozenset[str], scope: str, level: int) -> list[_File]:
    """Read a group of version 1; above the ranks' own, only what limits."""
    files = []
    if "cpuacct" in controllers and level == 0:
        usage = Channel("group.cpu", "s", "counter", scope, 1e-9)
        files += _file(folder / "cpuacct.usage", [usage], _limit)
    if "memory" in controllers:
        if level == 0:
            current = Channel("group.memory", "bytes", "gauge", scope)
            files += _file(folder / "memory.usage_in_bytes", [current], _limit)
        limit = read_small(folder / "memory.limit_in_bytes")
        if limit.isdigit() and int(limit) < NO_LIMIT:
            channel = Channel("group.memory-limit", "bytes", "gauge", scope)
            files += _file(folder / "memory.limit_in_bytes", [channel], _limit)
    if "cpu" in controllers:
        quota, period = (
            read_small(folder / "cpu.cfs_quota_us"),
            read_small(folder / "cpu.cfs_period_us"),
        )
        if quota and period and int(quota) > 0:
            channel = Channel("group.quota", "cores", "gauge", scope, 1 / int(period))
            files += _file(folder / "cpu.cfs_quota_us", [channel], _limit)
            files += _throttling(folder, scope, "throttled_time", 1e-9)
    return files
