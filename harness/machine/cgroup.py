"""Read what control groups leave a process: CPU time, memory, and how often it waited.

Versions 1 and 2, and both at once (hybrid). A limit anywhere above the process counts, so every
group from its own up to the mount is read and the tightest wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NO_LIMIT = 1 << 60  # version 1 says "unlimited" as a number near 2**63


@dataclass(frozen=True)
class Limits:
    """What is left to a process; None where there is no limit or nobody says."""

    cpus: float | None = None
    """Quota divided by period, for example 1.5."""
    memory_bytes: int | None = None
    throttled_periods: int | None = None
    throttled_s: float | None = None


@dataclass(frozen=True)
class _Mount:
    folder: Path
    root: str
    controllers: frozenset[str]
    version: int


def limits(root: Path = Path("/")) -> Limits:
    """Read the limits of this process; ``root`` is where a test keeps its /proc and /sys."""
    mounts = list(_mounts(root))
    memberships = list(_memberships(root))
    cpu: list[float] = []
    memory: list[int] = []
    throttled: tuple[int | None, float | None] = (None, None)
    for controllers, path in memberships:
        for mount in mounts:
            if mount.version == 2 and not controllers:
                groups = list(_upwards(mount, path))
                cpu += filter(None, (_quota(_text(group / "cpu.max")) for group in groups))
                memory += filter(None, (_number(_text(group / "memory.max")) for group in groups))
                throttled = _throttled(groups[0], "throttled_usec", 1e-6, throttled)
            elif mount.version == 1 and controllers & mount.controllers:
                groups = list(_upwards(mount, path))
                if "cpu" in controllers:
                    cpu += filter(None, map(_old_quota, groups))
                    throttled = _throttled(groups[0], "throttled_time", 1e-9, throttled)
                if "memory" in controllers:
                    names = (_text(group / "memory.limit_in_bytes") for group in groups)
                    memory += filter(None, map(_number, names))
    return Limits(min(cpu, default=None), min(memory, default=None), *throttled)


def _memberships(root: Path) -> Iterator[tuple[frozenset[str], str]]:
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        yield frozenset(filter(None, controllers.split(","))), path


def _mounts(root: Path) -> Iterator[_Mount]:
    for line in _text(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        options = frozenset(kind[2].split(",")) if kind[0] == "cgroup" else frozenset()
        folder = root / fields[4].lstrip("/")
        yield _Mount(folder, fields[3], options, 2 if kind[0] == "cgroup2" else 1)


def _upwards(mount: _Mount, path: str) -> Iterator[Path]:
    """Go from a process's own group up to the mount; inside a container only that part is seen."""
    inside = path[len(mount.root) :] if path.startswith(mount.root) else ""
    parts = [part for part in inside.split("/") if part and part != ".."]
    for depth in range(len(parts), -1, -1):
        yield mount.folder.joinpath(*parts[:depth])


def _quota(text: str) -> float | None:
    quota, _, period = text.partition(" ")
    if not quota.isdigit() or not period.isdigit():
        return None
    return int(quota) / int(period)


def _old_quota(group: Path) -> float | None:
    return _quota(f"{_text(group / 'cpu.cfs_quota_us')} {_text(group / 'cpu.cfs_period_us')}")


def _throttled(
    group: Path, key: str, unit: float, before: tuple[int | None, float | None]
) -> tuple[int | None, float | None]:
    counts = dict(line.split() for line in _text(group / "cpu.stat").splitlines() if " " in line)
    if "nr_throttled" not in counts or key not in counts:
        return before
    return int(counts["nr_throttled"]), int(counts[key]) * unit


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() and int(text) < _NO_LIMIT else None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        # No such controller here, or not ours to read: no limit is known.
        return ""
