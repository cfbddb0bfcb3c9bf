"""Make a slow tier: a file system on a loop device, held back by a control group.

    with slow_tier("ssd", size="1G") as tier:      a mounted folder; nothing is left behind
        tier.enter()                               this process, and what it starts, is held back

Needs root, a loop device and version 1 of the blkio controller. Writes that stay in the page cache
are not held back: only what reaches the device is.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

FIGURES = Path(__file__).with_name("throttles.toml")
_GROUPS = (Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup/blkio,cgroup"))


@dataclass(frozen=True)
class SlowTier:
    """A folder on a slow device."""

    folder: Path
    device: str
    group: Path

    def enter(self) -> None:
        """Hold this process back, and all that it will start."""
        (self.group / "cgroup.procs").write_text(str(os.getpid()))

    def leave(self) -> None:
        """Let this process go."""
        (self.group.parent / "cgroup.procs").write_text(str(os.getpid()))


def missing() -> str | None:
    """Say what this machine lacks; None if a slow tier can be made."""
    if os.geteuid() != 0:
        return "a slow tier needs root"
    if not any(place.is_dir() for place in _GROUPS):
        return "there is no blkio controller of version 1"
    return None if Path("/dev/loop-control").exists() else "there are no loop devices"


def limits(kind: str) -> str:
    """Say what a kind is held back to: its ratios are those of these figures, not of a device."""
    figures = tomllib.loads(FIGURES.read_text("utf-8"))[kind]
    rate, requests = figures["bytes_per_s"] / 1e6, figures["requests_per_s"]
    return f"{rate:.0f} MB/s and {requests:,} requests/s each way, for {kind}"


@contextmanager
def slow_tier(kind: str, *, size: str = "1G", beneath: Path | None = None) -> Iterator[SlowTier]:
    """Make a tier of a kind in throttles.toml, and take it away whatever happens."""
    figures = tomllib.loads(FIGURES.read_text("utf-8"))[kind]
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=beneath)))
        image, folder = home / "image", home / "tier"
        _run("truncate", "-s", size, str(image))
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", str(image))
        device = _run("losetup", "--find", "--show", "--direct-io=on", str(image)).strip()
        stack.callback(_run, "losetup", "--detach", device)
        folder.mkdir()
        _run("mount", "-o", "noatime", device, str(folder))
        stack.callback(_run, "umount", str(folder))
        group = next(place for place in _GROUPS if place.is_dir()) / f"bakeoff-{os.getpid()}"
        group.mkdir(exist_ok=True)  # several tiers of one process share it
        tier = SlowTier(folder, device, group)
        stack.callback(_emptied, tier)
        number = Path(device).stat().st_rdev
        major = f"{os.major(number)}:{os.minor(number)}"
        for file, name in (("bps", "bytes_per_s"), ("iops", "requests_per_s")):
            for way in ("read", "write"):
                limit = group / f"blkio.throttle.{way}_{file}_device"
                limit.write_text(f"{major} {figures[name]}")
        yield tier


def _emptied(tier: SlowTier) -> None:
    if not tier.group.is_dir():
        return
    for pid in (tier.group / "cgroup.procs").read_text().split():
        (tier.group.parent / "cgroup.procs").write_text(pid)
    tier.group.rmdir()


def _run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout
