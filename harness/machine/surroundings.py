"""Look around on this machine: networks, storage, clouds, and what starts jobs here.

``root`` lets a test lay out a /proc and /sys of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.machine.small_files import read_small

_SHARED = {
    "lustre": "Lustre",
    "gpfs": "IBM Spectrum Scale",
    "beegfs": "BeeGFS",
    "nfs": "NFS",
    "nfs4": "NFS",
    "ceph": "CephFS",
    "fuse.sshfs": "SSHFS",
}
_LOCAL = ("ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay")
LAUNCHERS = ("slurm", "mpirun", "lsf", "pbs", "flux")
_INSIDE = {"SLURM_JOB_ID": "slurm", "LSB_JOBID": "lsf", "PBS_JOBID": "pbs", "FLUX_URI": "flux"}


@dataclass(frozen=True)
class Fabric:
    """One network of this node."""

    name: str
    interface: str
    adapters: int
    bytes_per_s: float | None
    """Of one adapter, as its driver claims."""


@dataclass(frozen=True)
class Tier:
    """One place to keep files."""

    name: str
    path: str
    kind: str
    roles: tuple[str, ...]
    size: int | None


def read_network(root: Path = Path("/")) -> Fabric | None:
    """Give the fastest kind of network there is: InfiniBand and Omni-Path before Ethernet."""
    adapters = sorted((root / "sys/class/infiniband").glob("*"))
    for adapter in adapters:
        for port in sorted((adapter / "ports").glob("*")):
            if "ACTIVE" in read_small(port / "state") or len(adapters) == 1:
                rate = read_small(port / "rate").split()  # "100 Gb/sec (4X EDR)"
                speed = float(rate[0]) * 1e9 / 8 if rate else None
                kind = rate[-1].strip("()") if len(rate) > 2 else ""
                layer = read_small(port / "link_layer")
                name = "Omni-Path" if adapter.name.startswith("hfi") else layer or "InfiniBand"
                words = f"{name} {kind}".strip()
                return Fabric(words, adapter.name, len(adapters), speed)
    cards = [
        card
        for card in sorted((root / "sys/class/net").glob("*"))
        if (card / "device").exists() and read_small(card / "operstate") != "down"
    ]
    if not cards:
        return None
    speeds = {card: read_small(card / "speed") for card in cards}
    best = max(cards, key=lambda card: int(speeds[card]) if speeds[card].isdigit() else 0)
    speed = float(speeds[best]) * 1e6 / 8 if speeds[best].isdigit() else None
    return Fabric("Ethernet", best.name, len(cards), speed)


def read_cloud(root: Path = Path("/")) -> str | None:
    """Name the cloud's instance type, as the firmware says (DMI)."""
    dmi = root / "sys/class/dmi/id"
    vendor, product = read_small(dmi / "sys_vendor"), read_small(dmi / "product_name")
    if "Amazon EC2" in vendor or "Google" in vendor or "Microsoft" in vendor:
        return product or vendor
    return None


def read_tiers(places: Mapping[str, int], *, root: Path = Path("/")) -> tuple[Tier, ...]:
    """Give one place of each mount where this user may write; ``places`` are paths and sizes."""
    mounts = _mounts(root)
    found: list[Tier] = []
    seen: set[str] = set()
    for path, size in places.items():
        mount = _mount_of(path, mounts)
        if mount is None or mount[0] in seen:
            continue
        tier = _tier(path, mount, size, root)
        if tier is not None:
            seen.add(mount[0])
            found.append(tier)
    return tuple(found)


def _tier(path: str, mount: tuple[str, str, str], size: int, root: Path) -> Tier | None:
    _, device, kind = mount
    if kind in _SHARED:
        return Tier("scratch", path, _SHARED[kind], ("data", "checkpoint"), size)
    if kind == "tmpfs":
        return Tier("memory", path, "memory", ("fast",), size)
    if kind not in _LOCAL:
        return None
    disk = Path(device).name
    words = _disk(disk, root)
    roles = ("data", "checkpoint", *(("fast",) if words.startswith("NVMe") else ()))
    name = "nvme" if words.startswith("NVMe") else "disk"
    return Tier(name, path, f"{kind} on {words}", roles, size)


def _disk(name: str, root: Path) -> str:
    if name.startswith("nvme"):
        return "NVMe"
    if name.startswith(("vd", "xvd")):
        return "a virtual disk"
    turning = read_small(root / "sys/block" / name.rstrip("0123456789") / "queue/rotational")
    return {"1": "a hard disk", "0": "an SSD"}.get(turning, "a disk")


def read_launchers(answers: Mapping[str, str]) -> dict[str, str]:
    """Give what starts jobs here, with the first line of its version."""
    found = {}
    for name in LAUNCHERS:
        if name in answers:
            found[name] = next(iter(_lines(answers[name])), "version unknown")
    partitions = sorted(set(_lines(answers.get("partitions", ""))))
    if "slurm" in found and partitions:
        found["slurm"] += f" (partitions {', '.join(partitions)})"
    return found


def inside(environ: Mapping[str, str]) -> str:
    """Name the scheduler in whose allocation this environment is, or local."""
    return next((name for key, name in _INSIDE.items() if key in environ), "local")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _mounts(root: Path) -> list[tuple[str, str, str]]:
    """List (mount point, device, kind) of every mount; a later one hides an earlier one."""
    found = []
    for line in read_small(root / "proc/mounts").splitlines():
        device, point, kind, *_ = line.split()
        found.append((point.replace("\\040", " "), device, kind))
    return found


def _mount_of(path: str, mounts: list[tuple[str, str, str]]) -> tuple[str, str, str] | None:
    within = [one for one in mounts if Path(path).is_relative_to(one[0])]
    return max(enumerate(within), key=lambda one: (len(one[1][0]), one[0]))[1] if within else None
