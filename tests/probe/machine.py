"""Lay out the /proc and /sys of machines that nobody here has."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class FakeMachine:
    """A folder that looks like a machine to the probe."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def told(self, allowed: range) -> dict[str, Any]:
        """Give what no file tells."""
        return {"affinity": list(allowed), "environ": {}, "answers": {}, "places": {}}

    def cpus(self, cores: int, ways: int, *, per_l2: int = 1, model: str = "Some CPU") -> None:
        """Number CPUs as Linux does on x86: the first hardware thread of every core first."""
        total = cores * ways
        cpu = "sys/devices/system/cpu"
        self.write(f"{cpu}/online", f"0-{total - 1}")
        self.write("proc/cpuinfo", f"processor : 0\nmodel name : {model}\nflags : avx2")
        for number in range(total):
            core = number % cores
            siblings = ",".join(str(core + way * cores) for way in range(ways))
            tile = range(core - core % per_l2, core - core % per_l2 + per_l2)
            shared = ",".join(str(c + way * cores) for way in range(ways) for c in tile)
            self.write(f"{cpu}/cpu{number}/topology/thread_siblings_list", siblings)
            self.write(f"{cpu}/cpu{number}/topology/physical_package_id", "0")
            self.write(f"{cpu}/cpu{number}/cache/index2/level", "2")
            self.write(f"{cpu}/cpu{number}/cache/index2/shared_cpu_list", shared)

    def memory(self, *nodes: tuple[str, int, str]) -> None:
        """Lay out NUMA nodes: their CPUs, their GiB, their row of distances."""
        total = sum(size for _, size, _ in nodes)
        self.write("proc/meminfo", f"MemTotal: {total * 2**20} kB\nMemAvailable: {2**20} kB")
        self.write("sys/devices/system/node/online", f"0-{len(nodes) - 1}")
        for number, (cpus, size, distances) in enumerate(nodes):
            folder = f"sys/devices/system/node/node{number}"
            self.write(f"{folder}/cpulist", cpus)
            self.write(f"{folder}/meminfo", f"Node {number} MemTotal: {size * 2**20} kB")
            self.write(f"{folder}/distance", distances)

    def group(self, *, cpu: str = "max 100000", memory: str = "max") -> None:
        """Put this process into a control group of version 2."""
        self.write("proc/self/cgroup", "0::/job")
        self.write("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")
        self.write("sys/fs/cgroup/job/cpu.max", cpu)
        self.write("sys/fs/cgroup/job/memory.max", memory)
