"""Say what this process has used, in the operating system's words."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Mapping, Optional

from harness.worker.contracts import Unsupported


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


def threads(factors: Mapping[str, Any]) -> int:
    """Count the threads of one operator: as asked, else this rank's share.

    The share is what the launcher says: fewer than the CPUs where a control group's quota is less.
    """
    asked = factors.get("threads") or os.environ.get("BAKEOFF_THREADS")
    return int(asked) if asked else usable_cpus()


def usable_cpus() -> int:
    """Count the CPUs this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def require_allocator(factors: Mapping[str, Any]) -> None:
    """Refuse a process in which the allocator that its factors name is not loaded."""
    wanted = factors.get("allocator")
    if wanted and not _has_mapped(os.path.basename(wanted)):
        raise Unsupported(
            "the allocator '{}' is not loaded: install its library on this node, "
            "or give the library's path".format(wanted)
        )


def _has_mapped(library: str) -> bool:
    """Say whether a library is loaded in this process, by a part of its file's name."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return any(library in line.rpartition("/")[2] for line in maps if "/" in line)
