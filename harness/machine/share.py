"""Read from /proc and /sys the few facts about this machine that a plan needs."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from harness.machine import cgroup
from harness.machine.small_files import read_small

_FIRST_CPU = Path("/sys/devices/system/cpu/cpu0")
_UNITS = {"K": 1024, "M": 1024**2}
_DRIVER = Path("/proc/driver/nvidia/gpus")


def cpus() -> int:
    """Count the CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def cpu() -> str | None:
    """Name the CPU's model."""
    return _after(read_small(Path("/proc/cpuinfo")), "model name")


def memory_bytes() -> int | None:
    """Give the memory this process may use: the machine's, or its control group's if less."""
    total = _after(read_small(Path("/proc/meminfo")), "MemTotal")
    sizes = [int(total.split()[0]) * 1024] if total else []
    limit = cgroup.limits().memory_bytes
    return min([*sizes, *([] if limit is None else [limit])], default=None)


def free_memory_bytes() -> int | None:
    """Give the memory that is free for this process now; None where nothing says it."""
    free = _after(read_small(Path("/proc/meminfo")), "MemAvailable")
    sizes = [int(free.split()[0]) * 1024] if free else []
    left = cgroup.free_memory_bytes()
    return min([*sizes, *([] if left is None else [left])], default=None)


def cpu_quota() -> float | None:
    """Give the CPUs' worth of time that the control group grants; None: no limit."""
    return cgroup.limits().cpus


def cache_bytes() -> int:
    """Give what the largest cache of the first CPU holds; 0 where the machine does not say."""
    sizes = (read_small(one) for one in _FIRST_CPU.glob("cache/index*/size"))
    return max(map(_size, sizes), default=0)


def gpus() -> Counter[str]:
    """Count the NVIDIA GPUs by model, as the kernel driver lists them."""
    listed = [read_small(folder / "information") for folder in _DRIVER.glob("*")]
    return Counter(_after(text, "Model") or "NVIDIA GPU" for text in listed)


def _size(text: str) -> int:
    digits, unit = text[:-1], text[-1:]
    return int(digits) * _UNITS[unit] if digits.isdigit() and unit in _UNITS else 0


def _after(text: str, key: str) -> str | None:
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == key:
            return value.strip()
    return None
