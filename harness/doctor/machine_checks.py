"""Judge a reading of the machine: what would spoil numbers here, and the remedy.

Each check is a pure function of a Machine and one Finding; to add one, write it and list it last.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.doctor.finding import DoctorFinding
from harness.machine.machine import Machine
from harness.units import decimal_size, per_cent

_BUSY = 0.25
"""Load per CPU from which a machine is not idle; its own shell and the doctor stay below."""
_STEAL = 0.005
_DIRTY_BYTES = 256 * 2**20
_HIDDEN = "not shown by this machine"


def processors(machine: Machine) -> DoctorFinding:
    """Can the observer have a core of its own."""
    count = machine.usable_cpus
    of = f" of {machine.cpus_online}" if machine.cpus_online else ""
    seen = f"{count:g}{of} CPUs are ours"
    if count >= 3:
        return DoctorFinding("processors", "fine", seen)
    remedy = "The observer shares a core with the ranks, and trials are marked so; use 3 or more."
    return DoctorFinding("processors", "warning", seen, remedy)


def governor(machine: Machine) -> DoctorFinding:
    """Does the clock frequency follow the load."""
    if not machine.governors:
        return DoctorFinding("governor", "unknown", _HIDDEN)
    seen = ", ".join(machine.governors)
    if machine.governors == ("performance",):
        return DoctorFinding("governor", "fine", seen)
    remedy = "As root: cpupower frequency-set -g performance. Cold clocks slow the first steps."
    return DoctorFinding("governor", "warning", seen, remedy)


def turbo(machine: Machine) -> DoctorFinding:
    """Does the clock frequency depend on temperature and neighbours."""
    if machine.turbo is None:
        return DoctorFinding("turbo", "unknown", _HIDDEN)
    if not machine.turbo:
        return DoctorFinding("turbo", "fine", "off")
    remedy = (
        "Trials drift with temperature; interleaving evens it out. For steadier numbers, as root: "
        "echo 0 > /sys/devices/system/cpu/cpufreq/boost (or 1 > …/intel_pstate/no_turbo)."
    )
    return DoctorFinding("turbo", "warning", "on", remedy)


def hyper_threads(machine: Machine) -> DoctorFinding:
    """Do two of our CPUs, or one of ours and a stranger's, share a core."""
    if machine.cores_allowed is None or machine.shared_cpus is None:
        return DoctorFinding("hyper-threads", "unknown", _HIDDEN)
    count = len(machine.cpus_allowed)
    if machine.shared_cpus:
        cpus = ", ".join(map(str, machine.shared_cpus[:8]))
        remedy = "Ask the scheduler for whole cores (Slurm: --hint=nomultithread or --exclusive)."
        return DoctorFinding(
            "hyper-threads", "warning", f"others may run on the cores of CPUs {cpus}", remedy
        )
    seen = f"{count} CPUs on {machine.cores_allowed} cores"
    if count == machine.cores_allowed:
        return DoctorFinding("hyper-threads", "fine", seen)
    remedy = (
        "Compare threads = cores with threads = CPUs; convolutions rarely gain from the second."
    )
    return DoctorFinding("hyper-threads", "warning", seen, remedy)


def load(machine: Machine) -> DoctorFinding:
    """Does something else run."""
    if machine.load is None:
        return DoctorFinding("load", "unknown", _HIDDEN)
    cpus = machine.cpus_online or len(machine.cpus_allowed)
    seen = f"{machine.load[0]:.2f} on {cpus} CPUs (1 min), {machine.load[1]:.2f} (5 min)"
    if machine.load[0] <= _BUSY * cpus:
        return DoctorFinding("load", "fine", seen)
    remedy = "Stop what else runs (top shows it), or wait; trials would be contended."
    return DoctorFinding("load", "warning", seen, remedy)


def quota(machine: Machine) -> DoctorFinding:
    """Does a control group stop us when we have used our share."""
    if machine.cpu_quota is None:
        return DoctorFinding("cpu quota", "fine", "none")
    throttled = machine.throttled_s or 0.0
    seen = f"{machine.cpu_quota:g} CPUs on {len(machine.cpus_allowed)} allowed"
    seen += f", stopped for {throttled:.1f} s so far" if throttled else ""
    if machine.cpu_quota >= len(machine.cpus_allowed) and not throttled:
        return DoctorFinding("cpu quota", "fine", seen)
    remedy = (
        "A quota stops all threads for the rest of each period: give whole CPUs (a cpuset, "
        "docker --cpuset-cpus) or set threads to the quota."
    )
    return DoctorFinding("cpu quota", "warning", seen, remedy)


def memory(machine: Machine) -> DoctorFinding:
    """Is there room, and does the kernel swap."""
    usable, free = machine.usable_memory_bytes, machine.memory_available_bytes
    if usable is None or free is None:
        return DoctorFinding("memory", "unknown", _HIDDEN)
    seen = f"{decimal_size(usable)} are ours, {decimal_size(min(free, usable))} free"
    if machine.swap_used_bytes:
        seen += f", {decimal_size(machine.swap_used_bytes)} swapped out"
        return DoctorFinding(
            "memory", "warning", seen, "As root: swapoff -a; or end what fills memory."
        )
    if free < usable / 4:
        return DoctorFinding(
            "memory", "warning", seen, "End what fills memory before a large study."
        )
    return DoctorFinding("memory", "fine", seen)


def huge_pages(machine: Machine) -> DoctorFinding:
    """Are large pages there for those who ask."""
    seen = machine.transparent_huge_pages
    if seen is None:
        return DoctorFinding("huge pages", "unknown", _HIDDEN)
    if seen != "always":
        return DoctorFinding("huge pages", "fine", seen)
    remedy = (
        "The kernel moves memory behind a trial's back. As root: "
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled."
    )
    return DoctorFinding("huge pages", "warning", seen, remedy)


def numa_balancing(machine: Machine) -> DoctorFinding:
    """Does the kernel move pages between memories."""
    if machine.numa_balancing is None:
        return DoctorFinding("numa balancing", "unknown", _HIDDEN)
    seen = f"{'on' if machine.numa_balancing else 'off'}, {len(machine.numa) or 1} NUMA nodes"
    if not machine.numa_balancing or len(machine.numa) < 2:
        return DoctorFinding("numa balancing", "fine", seen)
    remedy = "As root: echo 0 > /proc/sys/kernel/numa_balancing; or bind ranks to one node each."
    return DoctorFinding("numa balancing", "warning", seen, remedy)


def page_cache(machine: Machine) -> DoctorFinding:
    """Will the kernel write behind a trial's back, and what do reads of files measure."""
    cached, dirty = machine.page_cache_bytes, machine.dirty_bytes
    if cached is None or dirty is None:
        return DoctorFinding("page cache", "unknown", _HIDDEN)
    seen = (
        f"{decimal_size(cached)} of files in memory, {decimal_size(dirty)} of them not yet written"
    )
    if dirty <= _DIRTY_BYTES:
        return DoctorFinding("page cache", "fine", seen)
    remedy = "Run `sync` first: what is written back during a trial takes its disk and CPU."
    return DoctorFinding("page cache", "warning", seen, remedy)


def thread_pinning(machine: Machine) -> DoctorFinding:
    """Can threads wander between memories, or does the shell pin them unseen."""
    if machine.thread_binding is not None:
        remedy = (
            "Unset OMP_PROC_BIND and KMP_AFFINITY: ranks inherit them, and every rank would pin "
            "its threads by them. Let [binding] of the platform decide."
        )
        return DoctorFinding(
            "thread pinning", "warning", f"'{machine.thread_binding}' here", remedy
        )
    count = len(machine.numa) or 1
    if count < 2:
        return DoctorFinding(
            "thread pinning", "fine", "left to the platform; one memory for all CPUs"
        )
    remedy = (
        'Threads may wander between memories within a rank: set [binding] threads = "pinned", or '
        "use a rank for each NUMA node. `bakeoff doctor --sweep` says what it gains."
    )
    return DoctorFinding("thread pinning", "warning", f"none, {count} NUMA nodes", remedy)


def clock_source(machine: Machine) -> DoctorFinding:
    """Is reading the clock cheap and steady."""
    seen = machine.clock_source
    if seen is None:
        return DoctorFinding("clock source", "unknown", _HIDDEN)
    if seen in ("tsc", "arch_sys_counter", "timebase", "kvm-clock", "hyperv_clocksource_tsc_page"):
        return DoctorFinding("clock source", "fine", seen)
    others = ", ".join(machine.clock_sources) or "none"
    remedy = f"Reading the clock takes microseconds with {seen}; the kernel also offers: {others}."
    return DoctorFinding("clock source", "warning", seen, remedy)


def hypervisor(machine: Machine) -> DoctorFinding:
    """Tell whether the hypervisor takes CPU time from this machine (steal)."""
    if machine.hypervisor is None:
        return DoctorFinding("hypervisor", "fine", "none seen")
    steal = machine.steal_share
    name = "a virtual machine" if machine.hypervisor == "unnamed" else machine.hypervisor
    if steal is None:
        return DoctorFinding("hypervisor", "unknown", f"{name}; time stolen from it is not shown")
    seen = f"{name}; {per_cent(steal, 1)} of its CPU time went to others since it started"
    if steal < _STEAL:
        return DoctorFinding("hypervisor", "fine", seen)
    remedy = "Its neighbours are felt: use a dedicated host, more trials, or another hour."
    return DoctorFinding("hypervisor", "warning", seen, remedy)


def gpus(machine: Machine) -> DoctorFinding:
    """Are the GPUs ours alone."""
    if machine.gpus is None:
        remedy = "The device is here, its driver library is not: check with nvidia-smi."
        return DoctorFinding("gpus", "warning", "a device, and no answer from the driver", remedy)
    if not machine.gpus:
        return DoctorFinding("gpus", "fine", "none")
    names = ", ".join(sorted({gpu.name for gpu in machine.gpus}))
    seen = f"{len(machine.gpus)} x {names}"
    busy = [gpu for gpu in machine.gpus if gpu.processes]
    if busy:
        users = sum(gpu.processes or 0 for gpu in busy)
        seen += f"; {users} processes compute on {len(busy)} of them"
        remedy = f"Wait, or choose others with CUDA_VISIBLE_DEVICES; in use: {busy[0].uuid}."
        return DoctorFinding("gpus", "warning", seen, remedy)
    if any(gpu.persistence is False for gpu in machine.gpus):
        remedy = "The driver unloads between trials. As root: nvidia-smi -pm 1."
        return DoctorFinding("gpus", "warning", f"{seen}; persistence mode is off", remedy)
    if len({gpu.ecc for gpu in machine.gpus}) > 1:
        remedy = "Make them alike (nvidia-smi -e), or leave some out; ECC costs bandwidth."
        return DoctorFinding(
            "gpus", "warning", f"{seen}; ECC is on in some and off in others", remedy
        )
    return DoctorFinding("gpus", "fine", seen)


CHECKS: tuple[Callable[[Machine], DoctorFinding], ...] = (
    processors,
    governor,
    turbo,
    hyper_threads,
    load,
    quota,
    memory,
    huge_pages,
    numa_balancing,
    thread_pinning,
    page_cache,
    clock_source,
    hypervisor,
    gpus,
)


def judge(machine: Machine) -> list[DoctorFinding]:
    """Run every check on one reading."""
    return [check(machine) for check in CHECKS]
