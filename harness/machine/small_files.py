"""Read the small files in which a kernel says what a machine is and does."""

from __future__ import annotations

from pathlib import Path


def read_small(path: Path) -> str:
    """Read a file without the spaces and zeros around its text; nothing where it cannot be read.

    It is not on this machine, or not ours to read: what it would say is unknown.
    """
    try:
        return path.read_text("utf-8", errors="replace").strip("\0\t\n ")
    except OSError:
        return ""


def boot_id(root: Path = Path("/")) -> str:
    """Name this boot of this machine, whose monotonic clock has one zero; empty if unknown."""
    return read_small(root / "proc/sys/kernel/random/boot_id")
