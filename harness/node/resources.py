"""This file says what this process has used, in the operating system's words."""

from __future__ import annotations

import time
from typing import Dict, Optional


def used() -> Dict[str, Optional[float]]:
    """Give peak resident memory and CPU time; unknown is None."""
    return {"peak_rss_bytes": _peak_rss_bytes(), "cpu_s": time.process_time()}


def _peak_rss_bytes() -> Optional[int]:
    """Read the high-water mark of this address space.

    Not ``ru_maxrss``: that one survives exec, so a small worker would show its parent's peak
    (getrusage(2) does not say so; kernel/exec.c, setmax_mm_hiwater_rss, does).
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except FileNotFoundError:  # no Linux
        pass
    return None


def has_mapped(library: str) -> bool:
    """Say whether a library is loaded in this process, by a part of its file's name."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return any(library in line.rpartition("/")[2] for line in maps if "/" in line)
