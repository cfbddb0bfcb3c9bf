"""Read what control groups leave a process: CPU time, memory, and how often it waited.

Versions 1 and 2, and both at once (hybrid). A limit anywhere above the process counts, so every
group from its own up to the mount is read and the tightest wins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.machine.small_files import read_small

NO_LIMIT = 1 << 60  # version 1 says "unlimited" as a number near 2**63


@dataclass(frozen=True)
class Limits:
    """The limits of a process; None where there is none or it is unknown."""

    cpus: float | None = None
    """Quota divided by period, for example 1.5."""
    memory_bytes: int | None = None
    throttled_periods: int | None = None
    throttled_s: float | None = None


@dataclass(frozen=True)
class Membership:
    """The groups above one process in one hierarchy."""

    version: int
    controllers: frozenset[str]
    """Of version 1; version 2 has one tree for all."""
    folders: tuple[Path, ...]
    """The process's own group first, then those above it, up to the mount."""

    @property
    def is_root(self) -> bool:
        """Whether the process lives in the topmost group that is seen here."""
        return len(self.folders) == 1


def limits(root: Path = Path("/")) -> Limits:
    """Read the limits of this process; ``root`` is where a test keeps its /proc and /sys."""
    cpu: list[float] = []
    memory: list[int] = []
    throttled: tuple[int | None, float | None] = (None, None)
    for one in memberships(root):
        own = one.folders[0]
        if one.version == 2:
            cpu += filter(None, (_quota(read_small(group / "cpu.max")) for group in one.folders))
            memory += filter(
                None, (_number(read_small(group / "memory.max")) for group in one.folders)
            )
            throttled = _throttled(own, "throttled_usec", 1e-6, throttled)
            continue
        if "cpu" in one.controllers:
            cpu += filter(None, map(_old_quota, one.folders))
            throttled = _throttled(own, "throttled_time", 1e-9, throttled)
        if "memory" in one.controllers:
            names = (read_small(group / "memory.limit_in_bytes") for group in one.folders)
            memory += filter(None, map(_number, names))
    return Limits(min(cpu, default=None), min(memory, default=None), *throttled)


def free_memory_bytes(root: Path = Path("/")) -> int | None:
    """Give what the groups above this process still allow it; None where nothing limits it.

    Files that the kernel keeps in memory count as free: it drops them where memory is wanted.
    """
    free = (_free(group, one.version) for one in memberships(root) for group in one.folders)
    return min((size for size in free if size is not None), default=None)


def _free(group: Path, version: int) -> int | None:
    names = ("max", "current") if version == 2 else ("limit_in_bytes", "usage_in_bytes")
    limit, used = (_number(read_small(group / f"memory.{name}")) for name in names)
    if limit is None or used is None:
        return limit
    # of version 1, the plain names leave out the groups below
    total = "" if version == 2 else "total_"
    kept = {f"{total}{which}_file" for which in ("active", "inactive")}
    lines = (line.split() for line in read_small(group / "memory.stat").splitlines())
    files = sum(int(words[1]) for words in lines if len(words) == 2 and words[0] in kept)
    return max(0, limit - max(0, used - files))


def memberships(root: Path = Path("/"), process: int | str = "self") -> Iterator[Membership]:
    """Give a process's groups in each hierarchy that is mounted."""
    folder = root / "proc" / str(process)
    mounts = list(_mounts(read_small(folder / "mountinfo")))
    for line in read_small(folder / "cgroup").splitlines():
        _, names, inside = line.split(":", 2)
        controllers = frozenset(filter(None, names.split(",")))
        for offered, parent, point in mounts:
            if controllers <= offered if controllers else not offered:
                top = root / point.lstrip("/")
                folders = tuple(_upwards(top, os.path.relpath(inside, parent)))
                yield Membership(1 if controllers else 2, controllers, folders)
                break


def _mounts(mountinfo: str) -> Iterator[tuple[frozenset[str], str, str]]:
    """Give of each mounted tree of groups its controllers, its top group and where it is.

    Version 1 lists its controllers among the mount's options.
    """
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup"):
            parent, point = before.split(None, 5)[3:5]
            kind, _, options = after.split(maxsplit=2)
            yield frozenset(() if kind == "cgroup2" else options.split(",")), parent, point


def _upwards(top: Path, inside: str) -> Iterator[Path]:
    """Go from a process's own group up to the mount; inside a container only the mount is seen."""
    parts = [part for part in inside.split("/") if part != "."]
    if parts[:1] == [".."]:
        parts = []
    for depth in range(len(parts), -1, -1):
        yield top.joinpath(*parts[:depth])


def _quota(text: str) -> float | None:
    quota, _, period = text.partition(" ")
    if not quota.isdigit() or not period.isdigit():
        return None
    return int(quota) / int(period)


def _old_quota(group: Path) -> float | None:
    return _quota(
        f"{read_small(group / 'cpu.cfs_quota_us')} {read_small(group / 'cpu.cfs_period_us')}"
    )


def _throttled(
    group: Path, key: str, unit: float, before: tuple[int | None, float | None]
) -> tuple[int | None, float | None]:
    counts = dict(
        line.split() for line in read_small(group / "cpu.stat").splitlines() if " " in line
    )
    if "nr_throttled" not in counts or key not in counts:
        return before
    return int(counts["nr_throttled"]), int(counts[key]) * unit


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() and int(text) < NO_LIMIT else None
