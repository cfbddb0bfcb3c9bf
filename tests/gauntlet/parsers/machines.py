"""What kernels say under /proc and /sys: to the probe, to the collector, to the agent and ranks."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path

from harness.collect.sampler import Observed
from harness.doctor import observer_cost
from harness.errors import BakeoffError
from harness.machine import cgroup, machine, surroundings, sysfs_topology
from harness.store.samples import samples_format
from harness.worker.facts.node_survey import survey
from harness.worker.input.evidence import counters
from tests.gauntlet.parsers.parser import Examples, Parse, Parser, laid, texts

_STATS = "read_bytes 12 samples [bytes] 4096 1048576 9437184\nopen 7 samples [regs]\n"
_OWN = ("stat", "io", "status", "cgroup", "mountinfo")
_MORE = (
    *("/proc/vmstat", "/proc/net/dev", "/proc/pressure/memory", "/proc/pressure/io"),
    "/sys/devices/system/node/node0/numastat",
)
_WRITTEN = {
    "/proc/fs/lustre/llite/work-1/stats": _STATS,
    "/sys/block/vda/stat": "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n",
    "/sys/fs/cgroup/cpu.max": "150000 100000\n",
    "/sys/class/infiniband/mlx5_0/ports/1/rate": "100 Gb/sec (4X EDR)\n",
    "/sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": "12345\n",
    "/sys/class/net/eth0/speed": "10000\n",
    "/sys/class/net/eth0/operstate": "up\n",
    "/sys/class/net/eth0/device/current_link_width": "8\n",
    "/sys/devices/system/edac/mc/mc0/ce_count": "3\n",
    "/sys/class/hwmon/hwmon0/temp1_input": "45000\n",
    "/sys/class/powercap/intel-rapl:0/energy_uj": "123456\n",
    "/sys/class/powercap/intel-rapl:0/max_energy_range_uj": "262143328850\n",
    "/sys/class/powercap/intel-rapl:0/name": "package-0\n",
    "/sys/devices/system/node/node0/memory_side_cache/index1/size": "4096\n",
    "/proc/driver/nvidia/gpus/0000:00:04.0/information": "Model: NVIDIA H100\nDevice Minor: 0\n",
    "/proc/driver/nvidia/gpus/0000:00:04.0/numa_status": "Node: 7\nStatus: online\n",
    "/dev/nvidia0": "",
}


def _tree(folder: Path) -> Path:
    """Lay out what this machine's kernel says, and what other machines' say, once."""
    root = folder / "root"
    if not root.exists():
        for path, text in {**survey()["files"], **_WRITTEN}.items():
            laid(text.encode(), root, path.lstrip("/"))
        for path in filter(Path.is_file, map(Path, _MORE)):
            laid(path.read_bytes(), root, str(path).lstrip("/"))
        for name in _OWN:
            laid(Path("/proc/self", name).read_bytes(), root, f"proc/1/{name}")
        laid(b"", root, "proc/1/task/1/children")
        laid(Path("/proc/self/status").read_bytes(), root, "proc/1/task/1/status")
    return root


def _said(path: str) -> Examples:
    def examples(folder: Path) -> Sequence[bytes]:
        place = _tree(folder) / path.lstrip("/")
        return [place.read_bytes() if place.exists() else b"1\n"]

    return examples


def _read(root: Path) -> object:
    """Read all that a plan, a page and a probe want to know of a machine."""
    return (
        machine.read_machine(root, allowed=(0, 1), environ={}),
        sysfs_topology.read_topology((0, 1), root=root, environ={}),
        sysfs_topology.read_distances(root),
        surroundings.read_network(root),
        surroundings.read_tiers({"/": 1, "/tmp": 1}, root=root),
        cgroup.limits(root),
    )


def _observe(root: Path, *, name: str) -> object:
    """Read one of the collector's sources as it does: any failure there is a gap."""
    source = importlib.import_module(f"harness.collect.sources.{name}")
    try:
        sampler = source.open(Observed(ranks={0: 1}, directory=root.parent, root=root))
    except Exception:  # noqa: BLE001  the collector notes it and does without
        return None
    try:
        return [samples_format.sample(1, tick, 0, 1, sampler.read()) for tick in range(2)]
    except Exception:  # noqa: BLE001  as above
        return None
    finally:
        sampler.close()


def _damaged(path: str, read: Callable[[Path], object]) -> Parse:
    """Read a machine of which one file is damaged."""

    def parse(data: bytes, folder: Path) -> object:
        root = _tree(folder)
        place = root / path.lstrip("/")
        kept = place.read_bytes() if place.exists() else b""
        try:
            laid(data, root, path.lstrip("/"))
            return read(root)
        finally:
            place.write_bytes(kept)

    return parse


def _observer_study(data: bytes, folder: Path) -> object:
    earlier, observer_cost._place = observer_cost._place, lambda: laid(data, folder, "study.json")
    try:
        return observer_cost.kept()
    finally:
        observer_cost._place = earlier


def _study(_: Path) -> Sequence[bytes]:
    told = {
        one.name: [1.0] if "tuple" in str(one.type) else 1
        for one in fields(observer_cost.ObserverStudy)
    }
    return [json.dumps({**told, "version": observer_cost.VERSION}).encode()]


_MACHINE = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/pressure/cpu"),
    *("/proc/mounts", "/proc/self/cgroup", "/proc/self/mountinfo", "/sys/fs/cgroup/cpu.max"),
    *("/sys/devices/system/cpu/online", "/sys/devices/system/node/node0/meminfo"),
    *("/sys/devices/system/node/node0/cpulist", "/sys/devices/system/node/node0/distance"),
    *("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "/sys/class/net/eth0/speed"),
    *("/sys/devices/system/cpu/cpu0/cache/index2/shared_cpu_list", "/sys/fs/cgroup/cpu/cpu.stat"),
    *("/sys/class/infiniband/mlx5_0/ports/1/rate", "/sys/devices/system/node/online"),
    "/proc/driver/nvidia/gpus/0000:00:04.0/information",
    "/proc/driver/nvidia/gpus/0000:00:04.0/numa_status",
)
_SOURCES = {
    "disks": ("/sys/block/vda/stat",),
    "energy": ("/sys/class/powercap/intel-rapl:0/energy_uj",),
    "fabric": ("/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data",),
    "frequency": ("/proc/cpuinfo",),
    "groups": ("/proc/1/cgroup", "/proc/1/mountinfo", "/sys/fs/cgroup/cpu/cpu.stat"),
    "edac": ("/sys/devices/system/edac/mc/mc0/ce_count",),
    "links": ("/sys/class/net/eth0/speed", "/sys/class/infiniband/mlx5_0/ports/1/rate"),
    "lustre": ("/proc/fs/lustre/llite/work-1/stats",),
    "memory": ("/proc/meminfo", "/proc/vmstat"),
    "neighbours": ("/proc/1/stat",),
    "network": ("/proc/net/dev",),
    "numa": ("/sys/devices/system/node/node0/meminfo",),
    "pressure": ("/proc/pressure/memory",),
    "processor": ("/proc/stat",),
    "ranks": ("/proc/1/stat", "/proc/1/io", "/proc/1/task/1/children", "/proc/1/task/1/status"),
    "temperature": ("/sys/class/hwmon/hwmon0/temp1_input",),
}
_CANNOT_BE = (BakeoffError, ValueError, LookupError, ArithmeticError, OSError)
"""What the probe says of nodes that tell of themselves what cannot be."""

PARSERS = (
    *(
        Parser(
            f"{path} of a machine",
            _said(path),
            _damaged(path, _read),
            (
                *("harness/machine/machine", "harness/machine/sysfs_topology"),
                *("harness/machine/surroundings", "harness/machine/cgroup"),
                "harness/machine/gpu_memory",
                "harness/machine/small_files",
            ),
            refuses=_CANNOT_BE,
            share=0.05,
        )
        for path in _MACHINE
    ),
    *(
        Parser(
            f"{path}, by the source {name}",
            _said(path),
            _damaged(path, partial(_observe, name=name)),
            (f"harness/collect/sources/{name}", "harness/collect/open_files"),
            share=0.1,
        )
        for name, paths in _SOURCES.items()
        for path in paths
    ),
    Parser(
        "sums of Lustre",
        texts(_STATS),
        lambda data, folder: counters._sent(str(laid(data, folder, "stats"))),
        ("harness/worker/input/evidence/counters",),
        refuses=(ValueError, IndexError),
        share=0.2,
    ),
    Parser(
        "the observer's latest study",
        _study,
        _observer_study,
        ("harness/doctor/observer_cost",),
        is_json=True,
    ),
)
