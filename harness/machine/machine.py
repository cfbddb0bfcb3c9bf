"""Read what this machine is and what of it this process may use, from /proc and /sys.

Everything that could not be read is None. ``root`` lets a test lay out a /proc and /sys of its own.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.machine import cgroup
from harness.machine.gpu_memory import size_of_gpus
from harness.machine.gpus import Gpu, has_gpu, read_gpus
from harness.machine.number_lists import read_list
from harness.machine.small_files import read_small

# What decides which kernels a framework picks.
_CAPABILITIES = frozenset(
    {
        *("sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni"),
        *("avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
        *("avx512er", "avx512pf", "amx_tile", "amx_bf16", "amx_int8"),
        *("asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve", "sve2", "altivec", "vsx"),
    }
)


@dataclass(frozen=True)
class NumaNode:
    """One memory domain."""

    cpus: tuple[int, ...]
    memory_bytes: int | None


@dataclass(frozen=True)
class Machine:
    """One reading of the machine."""

    hostname: str
    system: str
    kernel: str
    architecture: str
    cpu_model: str | None
    capabilities: tuple[str, ...]
    sockets: int | None
    cores: int | None
    threads_per_core: int | None
    cpus_online: int | None
    cpus_allowed: tuple[int, ...]
    """This process's affinity."""
    cores_allowed: int | None
    """How many cores those CPUs lie on."""
    shared_cpus: tuple[int, ...] | None
    """Allowed CPUs whose core has a thread that is not allowed, so that others may run there."""
    cpu_quota: float | None
    """CPUs' worth of time that the control group grants; None: no limit."""
    throttled_periods: int | None
    throttled_s: float | None
    memory_bytes: int | None
    memory_available_bytes: int | None
    memory_limit_bytes: int | None
    swap_used_bytes: int | None
    page_cache_bytes: int | None
    dirty_bytes: int | None
    """Written by programs, and not yet by the kernel."""
    thread_binding: str | None
    """OMP_PROC_BIND or KMP_AFFINITY of this environment, which ranks inherit."""
    numa: tuple[NumaNode, ...]
    numa_balancing: bool | None
    governors: tuple[str, ...]
    """Of the allowed CPUs; empty where the machine shows none."""
    turbo: bool | None
    smt: bool | None
    transparent_huge_pages: str | None
    clock_source: str | None
    clock_sources: tuple[str, ...]
    hypervisor: str | None
    """What runs beneath this kernel; None where nothing says that something does."""
    container: str | None
    steal_share: float | None
    """Of all CPU time since boot, taken by the hypervisor for others."""
    load: tuple[float, float, float] | None
    cpu_pressure: float | None
    """Share of the last 10 s in which some task waited for a CPU."""
    gpus: tuple[Gpu, ...] | None

    @property
    def usable_cpus(self) -> float:
        """How many CPUs' worth of work this process can get."""
        allowed = float(len(self.cpus_allowed))
        return allowed if self.cpu_quota is None else min(allowed, self.cpu_quota)

    @property
    def usable_memory_bytes(self) -> int | None:
        """How much memory this process can get."""
        sizes = [one for one in (self.memory_bytes, self.memory_limit_bytes) if one is not None]
        return min(sizes, default=None)


def read_machine(
    root: Path = Path("/"),
    *,
    allowed: Collection[int] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Machine:
    """Take one reading."""
    cpus = tuple(sorted(os.sched_getaffinity(0) if allowed is None else allowed))
    info = _pairs(read_small(root / "proc/cpuinfo"))
    memory = _pairs(read_small(root / "proc/meminfo"))
    total = _kib(memory, "MemTotal")
    flags = set((info.get("flags") or info.get("Features") or "").split())
    devices = root / "sys/devices/system"
    siblings = {cpu: _siblings(devices, cpu) for cpu in cpus}
    known = all(siblings.values())
    online = read_list(read_small(devices / "cpu/online"))
    everyone = [_siblings(devices, cpu) or (cpu,) for cpu in online] if known else []
    cores = len(set(everyone)) or None
    limits = cgroup.limits(root)
    uname = platform.uname()
    swap = [_kib(memory, name) for name in ("SwapTotal", "SwapFree")]
    thp = read_small(root / "sys/kernel/mm/transparent_hugepage/enabled")
    clock = devices / "clocksource/clocksource0"
    balancing = read_small(root / "proc/sys/kernel/numa_balancing")
    return Machine(
        hostname=uname.node,
        system=uname.system,
        kernel=uname.release,
        architecture=uname.machine,
        cpu_model=info.get("model name") or info.get("cpu") or info.get("CPU part"),
        capabilities=tuple(sorted(flags & _CAPABILITIES)),
        sockets=_sockets(devices, online),
        cores=cores,
        threads_per_core=max(map(len, everyone), default=None),
        cpus_online=len(online) or None,
        cpus_allowed=cpus,
        cores_allowed=len(set(siblings.values())) if known else None,
        shared_cpus=tuple(c for c in cpus if set(siblings[c]) - set(cpus)) if known else None,
        cpu_quota=limits.cpus,
        throttled_periods=limits.throttled_periods,
        throttled_s=limits.throttled_s,
        memory_bytes=None if total is None else total - size_of_gpus(root),
        memory_available_bytes=_kib(memory, "MemAvailable"),
        memory_limit_bytes=limits.memory_bytes,
        swap_used_bytes=None if swap[0] is None or swap[1] is None else swap[0] - swap[1],
        page_cache_bytes=_kib(memory, "Cached"),
        dirty_bytes=_kib(memory, "Dirty"),
        thread_binding=environ.get("OMP_PROC_BIND") or environ.get("KMP_AFFINITY"),
        numa=_numa(devices / "node"),
        numa_balancing=balancing != "0" if balancing else None,
        governors=_governors(devices, cpus),
        turbo=_turbo(devices / "cpu"),
        smt={"1": True, "0": False}.get(read_small(devices / "cpu/smt/active")),
        transparent_huge_pages=thp.partition("[")[2].partition("]")[0] or None,
        clock_source=read_small(clock / "current_clocksource") or None,
        clock_sources=tuple(read_small(clock / "available_clocksource").split()),
        hypervisor=_hypervisor(root, flags),
        container=_container(root, environ),
        steal_share=_steal(read_small(root / "proc/stat")),
        load=_load(read_small(root / "proc/loadavg")),
        cpu_pressure=_pressure(read_small(root / "proc/pressure/cpu")),
        gpus=read_gpus() if has_gpu() else (),
    )


def _siblings(devices: Path, cpu: int) -> tuple[int, ...]:
    return read_list(read_small(devices / f"cpu/cpu{cpu}/topology/thread_siblings_list"))


def _sockets(devices: Path, online: tuple[int, ...]) -> int | None:
    ids = {read_small(devices / f"cpu/cpu{cpu}/topology/physical_package_id") for cpu in online}
    return len(ids - {"", "-1"}) or None


def _numa(folder: Path) -> tuple[NumaNode, ...]:
    nodes = []
    for number in read_list(read_small(folder / "online")):
        node = folder / f"node{number}"
        total = read_small(node / "meminfo").partition("MemTotal:")[2].split()
        size = int(total[0]) * 1024 if total else None
        nodes.append(NumaNode(read_list(read_small(node / "cpulist")), size))
    return tuple(nodes)


def _governors(devices: Path, cpus: tuple[int, ...]) -> tuple[str, ...]:
    found = {read_small(devices / f"cpu/cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus}
    return tuple(sorted(found - {""}))


def _turbo(folder: Path) -> bool | None:
    refused = read_small(folder / "intel_pstate/no_turbo")
    if refused:
        return refused == "0"
    boost = read_small(folder / "cpufreq/boost")
    return boost == "1" if boost else None


def _hypervisor(root: Path, flags: set[str]) -> str | None:
    kind = read_small(root / "sys/hypervisor/type")
    if "hypervisor" not in flags and not kind:
        return None
    dmi = root / "sys/class/dmi/id"
    model = " ".join(
        filter(None, (read_small(dmi / "sys_vendor"), read_small(dmi / "product_name")))
    )
    return " ".join(filter(None, (kind, model))) or "unnamed"


def _container(root: Path, environ: Mapping[str, str]) -> str | None:
    for variable in ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"):
        if variable in environ:
            return variable.partition("_")[0].lower()
    for name, kind in ((".dockerenv", "docker"), ("run/.containerenv", "podman")):
        if (root / name).exists():
            return kind
    if "kubepods" in read_small(root / "proc/self/cgroup"):
        return "kubernetes"
    return environ.get("container") or None


def _steal(text: str) -> float | None:
    fields = [int(one) for one in text.partition("\n")[0].split()[1:]]
    # user nice system idle iowait irq softirq steal; guest time is within user already.
    total = sum(fields[:8])
    return fields[7] / total if len(fields) > 7 and total else None


def _load(text: str) -> tuple[float, float, float] | None:
    fields = text.split()[:3]
    return (float(fields[0]), float(fields[1]), float(fields[2])) if len(fields) == 3 else None


def _pressure(text: str) -> float | None:
    average = text.partition("avg10=")[2].partition(" ")[0]
    return float(average) / 100 if average else None


def _pairs(text: str) -> dict[str, str]:
    """Read ``name : value`` lines; the first of a name counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found


def _kib(pairs: Mapping[str, str], name: str) -> int | None:
    value = pairs.get(name, "").split()
    return int(value[0]) * 1024 if value else None
