"""Divide a node's cores among ranks, within the memories that they are near to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.machine.topology import Core, Topology

_WASTE = 8
"""Whole second-level caches may cost a rank one core in so many."""


@dataclass(frozen=True)
class Domain:
    """Cores of one socket, near to the same memory, in an order that keeps caches together."""

    cores: tuple[Core, ...]
    devices: frozenset[int]
    """Accelerators near to them."""


def by_memory(topology: Topology, cores: Sequence[Core]) -> list[Domain]:
    """Group cores by socket and the memories near to them, with the accelerators near their CPUs.

    One memory may serve two sockets, where the firmware interleaves or a recording tells no better.
    """
    groups: dict[tuple[int, ...], list[Core]] = {}
    first: dict[int, int] = {}
    for core in cores:
        first[core.l2] = min(core.cpus[0], first.get(core.l2, core.cpus[0]))
    for core in sorted(cores, key=lambda core: (core.package, first[core.l2], core.cpus[0])):
        near = tuple(sorted(one.number for one in topology.near(core.cpus)))
        groups.setdefault((core.package, *near), []).append(core)
    found = []
    for members in groups.values():
        cpus = {cpu for core in members for cpu in core.cpus}
        devices = frozenset(one.index for one in topology.devices if one.cpus & cpus)
        found.append(Domain(tuple(members), devices))
    return sorted(found, key=lambda domain: (domain.cores[0].package, domain.cores[0].cpus[0]))


def crowded(domains: Sequence[Domain], devices: Sequence[tuple[int, ...]]) -> bool:
    """Tell whether more ranks want to be near some memory than it has cores, for their devices."""
    return any(
        sum(bool(domain.devices & set(own)) for own in devices) > len(domain.cores)
        for domain in domains
    )


def _by_socket(domains: Sequence[Domain]) -> list[Domain]:
    sockets: dict[int, list[Domain]] = {}
    for one in domains:
        sockets.setdefault(one.cores[0].package, []).append(one)
    return [
        Domain(
            tuple(core for one in own for core in one.cores),
            frozenset().union(*(one.devices for one in own)),
        )
        for own in sockets.values()
    ]


def take(
    domains: list[Domain],
    ranks: int,
    want: int | None,
    *,
    spread: bool,
    devices: Sequence[tuple[int, ...]],
) -> list[tuple[Core, ...]]:
    """Give each rank its cores: ``want`` of them, or an equal share of all."""
    homes = _homes(domains, ranks, want, spread=spread, devices=devices)
    if homes is None and len(sockets := _by_socket(domains)) > 1:
        domains = sockets
        homes = _homes(domains, ranks, want, spread=spread, devices=devices)
    if homes is None:
        return _cut([core for domain in domains for core in domain.cores], ranks, want)
    crowd = Counter(home for home in homes)
    room = min(len(domains[home].cores) // count for home, count in crowd.items())
    size = _whole(domains, crowd, min(want or room, room))
    used: Counter[int] = Counter()
    shares = []
    for home in homes:
        start = used[home] * size
        shares.append(domains[home].cores[start : start + size])
        used[home] += 1
    return shares


def _homes(
    domains: list[Domain],
    ranks: int,
    want: int | None,
    *,
    spread: bool,
    devices: Sequence[tuple[int, ...]],
) -> list[int] | None:
    """Choose each rank's domain; None where ranks are larger than domains."""
    sizes = [len(domain.cores) for domain in domains]
    if ranks < len(domains) and not (want and want <= max(sizes)) and not any(devices):
        return None
    count: Counter[int] = Counter()
    homes = []
    for rank in range(ranks):
        near = [i for i, one in enumerate(domains) if one.devices & set(devices[rank])]
        if want and not spread and not near:
            fits = [i for i in range(len(domains)) if (count[i] + 1) * want <= sizes[i]]
            home = fits[0] if fits else _roomiest(range(len(domains)), sizes, count)
        else:
            home = _roomiest(near or range(len(domains)), sizes, count)
        count[home] += 1
        homes.append(home)
    if any(sizes[home] < crowd for home, crowd in count.items()):
        return None
    if want and any(sizes[home] // crowd < want for home, crowd in count.items()):
        return None
    return homes if spread or any(devices) else sorted(homes)


def _roomiest(choices: Sequence[int], sizes: list[int], count: Counter[int]) -> int:
    return max(choices, key=lambda i: (sizes[i] / (count[i] + 1), -i))


def _whole(domains: list[Domain], crowd: Counter[int], size: int) -> int:
    """Round a share down to whole second-level caches, if that costs little."""
    caches = max(max(Counter(core.l2 for core in domains[home].cores).values()) for home in crowd)
    rest = size % caches
    return size - rest if size > caches and rest * _WASTE <= size else size


def _cut(cores: list[Core], ranks: int, want: int | None) -> list[tuple[Core, ...]]:
    """Cut through the cores where domains are no guide, whole caches still kept."""
    each = len(cores) // ranks
    size = min(want or each, each)
    return [tuple(cores[rank * each : rank * each + size]) for rank in range(ranks)]
