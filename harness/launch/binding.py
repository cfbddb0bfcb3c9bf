"""Plan who runs where on a node: cores, memory and accelerators for ranks and observer.

It is pure: a topology and what is wanted make a Binding, or a refusal that says what to change.

Ranks get equal shares: ranks of unequal size would wait for each other, so what does not divide
stays idle. A share lies within one NUMA domain and socket wherever that has a rank to itself or
more, and is made of whole second-level caches (tiles of Knights Landing) where that costs an eighth
at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.errors import UsageError
from harness.launch.numa_domains import Domain, by_memory, crowded, take
from harness.launch.numactl import MemoryPolicy, memory_policy
from harness.machine.topology import Core, Topology

SHARED_WITH_OBSERVER = "shares a core with the observer"
MORE_RANKS_THAN_CORES = "more ranks than cores"
SHARES_CORES = "ranks share cores, each on hardware threads of its own"
QUOTA = "a CPU quota stops its threads"


@dataclass(frozen=True)
class BindingRequest:
    """What is to be laid out."""

    ranks: int = 1
    threads: int | None = None
    """Threads of each rank; None: as many as its CPUs."""
    devices: int = 0
    """Accelerators of each rank."""
    observer: int = 1
    """Cores kept for the observer."""
    policy: str = "compact"
    pinned: bool = False
    """Keep each thread to a core."""
    hyper_threads: bool = True
    memory: str = "any"
    oversubscribe: bool = False
    quota: float | None = None
    """CPUs' worth of time that a control group grants."""


@dataclass(frozen=True)
class Share:
    """What one rank gets."""

    cpus: tuple[int, ...]
    cores: tuple[tuple[int, ...], ...]
    """The same CPUs by core."""
    threads: int
    memory: MemoryPolicy
    devices: tuple[int, ...]
    pinned: bool

    @property
    def variables(self) -> dict[str, str]:
        """Give what workers and OpenMP read (OpenMP 5 §6; Intel's KMP_AFFINITY for older ones)."""
        threads = str(self.threads)
        counts = {"BAKEOFF_THREADS": threads, "OMP_NUM_THREADS": threads}
        if not self.pinned:
            return counts
        places = ",".join("{" + ",".join(map(str, core)) + "}" for core in self.cores)
        numbers = ",".join(map(str, (cpu for way in zip_cores(self.cores) for cpu in way)))
        return {
            **counts,
            "OMP_PLACES": places,
            "OMP_PROC_BIND": "close",
            "KMP_AFFINITY": f"granularity=fine,proclist=[{numbers}],explicit",
        }


@dataclass(frozen=True)
class Binding:
    """The CPUs, memory and devices of each rank on a node, with remarks."""

    observer: int | None
    """The agent's own CPU; None where it shares one."""
    observer_cpus: tuple[int, ...]
    """All CPUs kept for it: every hardware thread of its cores."""
    shares: tuple[Share, ...]
    idle: tuple[int, ...]
    marks: tuple[str, ...]

    @property
    def ranks(self) -> tuple[tuple[int, ...], ...]:
        """Each rank's CPUs."""
        return tuple(share.cpus for share in self.shares)


def bind(topology: Topology, wish: BindingRequest) -> Binding:
    """Lay out ranks and observer, or refuse."""
    everywhere = topology.cpus
    if not everywhere:
        raise UsageError("there is no CPU to bind to")
    chosen, left = _keep(topology.cores, wish)
    marks = [] if chosen or wish.observer == 0 else [SHARED_WITH_OBSERVER]
    domains = by_memory(topology, left)
    devices = _devices(topology, wish)
    if crowded(domains, devices):  # accelerators elsewhere have cores near them
        devices = _devices(topology, replace(wish, policy="spread"))
    if wish.policy == "none":
        shares = [tuple(core for domain in domains for core in domain.cores)] * wish.ranks
        if wish.ranks > 1:
            marks.append("ranks run on any of the same CPUs (binding.policy is none)")
    else:
        shares, more = _shares(domains, devices, wish)
        marks += more
    used = {cpu for share in shares for core in share for cpu in _usable(core, wish)}
    made = tuple(
        _share(topology, share, devices[index], wish) for index, share in enumerate(shares)
    )
    if wish.quota is not None and wish.quota < len(used):
        marks.append(f"{QUOTA}: {wish.quota:g} CPUs' worth on {len(used)} CPUs")
    observer_cpus = tuple(cpu for core in chosen for cpu in core.cpus)
    idle = tuple(cpu for cpu in everywhere if cpu not in used and cpu not in observer_cpus)
    return Binding(
        observer=chosen[-1].cpus[0] if chosen else None,
        observer_cpus=observer_cpus,
        shares=made,
        idle=idle,
        marks=tuple(marks),
    )


def zip_cores(cores: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Go over the first hardware threads of all cores, then the second ones, and so on."""
    ways = max(map(len, cores), default=0)
    return [tuple(core[way] for core in cores if way < len(core)) for way in range(ways)]


def _keep(
    cores: tuple[Core, ...], wish: BindingRequest
) -> tuple[tuple[Core, ...], tuple[Core, ...]]:
    """Keep the last cores of each package in turn, if two and one for each rank are left.

    Packages give alike, so that equal shares of them stay equal: on Summit one of 22 cores each.
    """
    ordered = tuple(sorted(cores, key=lambda core: (core.package, core.cpus[0])))
    count = min(wish.observer, max(0, len(ordered) - max(2, wish.ranks)))
    packages = sorted({core.package for core in ordered})
    turns = {
        core: (turn, -packages.index(package))
        for package in packages
        for turn, core in enumerate(core for core in reversed(ordered) if core.package == package)
    }
    chosen = set(sorted(ordered, key=turns.__getitem__)[:count])
    return (
        tuple(core for core in ordered if core in chosen),
        tuple(core for core in ordered if core not in chosen),
    )


def _usable(core: Core, wish: BindingRequest) -> tuple[int, ...]:
    return core.cpus if wish.hyper_threads else core.cpus[:1]


def _devices(topology: Topology, wish: BindingRequest) -> list[tuple[int, ...]]:
    """Give each rank its accelerators: neighbours in number are neighbours in the machine."""
    wanted = wish.ranks * wish.devices
    if wanted > len(topology.devices):
        raise UsageError(
            f"{wish.ranks} ranks with {wish.devices} accelerators each need {wanted}; "
            f"there are {len(topology.devices)}"
        )
    order = sorted(topology.devices, key=lambda one: (min(one.cpus, default=0), one.index))
    if wish.policy == "spread" and wish.devices:
        order = [order[i * len(order) // wanted] for i in range(wanted)]
    each = wish.devices
    numbers = [one.index for one in order[:wanted]]
    return [tuple(numbers[rank * each : (rank + 1) * each]) for rank in range(wish.ranks)]


def _shares(
    domains: list[Domain], devices: list[tuple[int, ...]], wish: BindingRequest
) -> tuple[list[tuple[Core, ...]], list[str]]:
    cores = sum(len(domain.cores) for domain in domains)
    cpus = sum(len(_usable(core, wish)) for domain in domains for core in domain.cores)
    if wish.threads is not None and wish.threads * wish.ranks > cpus:
        asked = f"{wish.ranks} ranks of {wish.threads} threads"
        _refuse_unless_asked(asked, f"{cpus} CPUs", wish)
    elif wish.ranks > cpus:
        _refuse_unless_asked(f"{wish.ranks} ranks", f"{cpus} CPUs", wish)
    if wish.ranks > cores:
        if wish.ranks > cpus:
            everything = tuple(core for domain in domains for core in domain.cores)
            return [everything] * wish.ranks, [MORE_RANKS_THAN_CORES]
        threads = [
            Core((cpu,), core.package, core.l2)
            for domain in domains
            for core in domain.cores
            for cpu in _usable(core, wish)
        ]
        each = len(threads) // wish.ranks
        return [tuple(threads[r * each : (r + 1) * each]) for r in range(wish.ranks)], [
            SHARES_CORES
        ]
    want = None
    if wish.threads is not None:
        ways = max(len(_usable(core, wish)) for domain in domains for core in domain.cores)
        want = -(-wish.threads // ways)
    return take(domains, wish.ranks, want, spread=wish.policy == "spread", devices=devices), []


def _refuse_unless_asked(what: str, have: str, wish: BindingRequest) -> None:
    if not wish.oversubscribe:
        raise UsageError(
            f"{what} need more than the {have} that this platform leaves them.\n"
            "    Use fewer, or let them share: [binding] oversubscribe = true in the platform "
            "(their trials are marked)."
        )


def _share(
    topology: Topology, cores: tuple[Core, ...], devices: tuple[int, ...], wish: BindingRequest
) -> Share:
    by_core = tuple(_usable(core, wish) for core in cores)
    cpus = tuple(sorted(cpu for core in by_core for cpu in core))
    threads = wish.threads or len(cpus)
    if wish.threads is None and wish.quota is not None:
        threads = max(1, min(threads, int(wish.quota / wish.ranks)))
    policy = memory_policy(wish.memory, topology, cpus)
    return Share(cpus, by_core, threads, policy, devices, wish.pinned)
