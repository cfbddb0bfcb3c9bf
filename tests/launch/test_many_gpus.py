"""Nodes of many GPUs, as their driver tells them: read, and bound to.

The texts under ``topologies/`` are in the form of `nvidia-smi topo -m` on nodes of these models, as
public documents show it; nobody here has logged in to one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.launch.binding import BindingRequest, bind
from harness.launch.binding_text import draw, draw_node
from harness.machine.gpus import graph
from harness.machine.number_lists import read_list
from harness.machine.topology import Core, Device, MemoryNode, Topology
from harness.platform.hardware import Accelerators
from harness.probe.remote import links
from tests.probe.fake_nvml import nvml

Golden = Callable[[str, str], None]
FOLDER = Path(__file__).with_name("topologies")


@dataclass(frozen=True)
class Machine:
    """What is known of a node beside its text."""

    name: str
    gpus: int
    sockets: int
    domains: int
    """NUMA nodes."""
    cores: int
    """Of a socket."""
    threads: int
    joined: str
    """The word for the link of GPUs 0 and 1."""
    partners: tuple[tuple[str, ...], ...]
    """The PCI address at the other end of each NVLink of each GPU, as NVML tells it."""


def switched(gpus: int, links: int, switches: int) -> tuple[tuple[str, ...], ...]:
    """Give GPUs whose links end at switches, dealt out over them."""
    return tuple(tuple(f"switch{link % switches}" for link in range(links)) for _ in range(gpus))


def meshed(*rows: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(f"gpu{other}" for other in row.split()) for row in rows)


CUBE_MESH = meshed(
    *("1 2 2 3 7 7", "0 2 3 3 6 6", "0 0 1 3 3 5", "0 1 1 2 2 4"),
    *("3 5 5 6 6 7", "2 4 4 6 7 7", "1 1 4 4 5 7", "0 0 4 5 5 6"),
)
FOUR = meshed(*(" ".join(f"{b} " * 6 for b in range(4) if b != a) for a in range(4)))
MACHINES = [
    Machine("dgx-1", 8, 2, 2, 20, 2, "NV1", CUBE_MESH),
    Machine("dgx-2", 16, 2, 2, 24, 2, "NVSwitch", switched(16, 6, 6)),
    Machine("dgx-a100", 8, 2, 8, 64, 2, "NVSwitch", switched(8, 12, 6)),
    Machine("dgx-h100", 8, 2, 2, 56, 2, "NVSwitch", switched(8, 18, 4)),
    Machine("gh200", 4, 4, 4, 72, 1, "NV6", FOUR),
]
every = pytest.mark.parametrize("machine", MACHINES, ids=lambda one: one.name)


def told(machine: Machine) -> str:
    return (FOLDER / f"{machine.name}.txt").read_text()


def near(machine: Machine) -> list[frozenset[int]]:
    """Give the CPUs that each GPU's line names."""
    rows = [line.split() for line in told(machine).splitlines() if line.startswith("GPU")]
    return [frozenset(read_list(row[row.index(numbers(row))])) for row in rows]


def numbers(row: list[str]) -> str:
    return next(word for word in row[1:] if word[0].isdigit() and "-" in word)


def topology(machine: Machine) -> Topology:
    """Lay out its node as Linux numbers it: every core's first thread, then the second ones."""
    count = machine.sockets * machine.cores
    cores = tuple(
        Core(
            tuple(core + count * thread for thread in range(machine.threads)),
            core // machine.cores,
            core,
        )
        for core in range(count)
    )
    memories = tuple(
        MemoryNode(
            domain,
            frozenset(
                cpu
                for at, core in enumerate(cores)
                if at * machine.domains // count == domain
                for cpu in core.cpus
            ),
        )
        for domain in range(machine.domains)
    )
    devices = tuple(Device(i, cpus, machine.name) for i, cpus in enumerate(near(machine)))
    pairs = {(int(a), int(b)): link for a, b, link in links(told(machine))}
    return Topology(cores, memories, devices, pairs)


@every
def test_what_the_driver_prints_and_what_its_library_answers_are_the_same_links(
    machine: Machine,
) -> None:
    printed = links(told(machine))
    assert len(printed) == machine.gpus * (machine.gpus - 1) // 2
    assert {(a, b): link for a, b, link in printed}["0", "1"] == machine.joined
    answered = graph(nvml([list(one) for one in machine.partners]))
    assert answered == printed
    claim = Accelerators(model="x", count=machine.gpus, graph=[list(one) for one in printed])
    assert claim.links()[0, 1] == machine.joined


@every
def test_each_rank_has_one_gpu_and_cores_near_it(machine: Machine, golden: Golden) -> None:
    node = topology(machine)
    made = bind(node, BindingRequest(machine.gpus, devices=1))
    assert sorted(share.devices for share in made.shares) == [(i,) for i in range(machine.gpus)]
    for share in made.shares:
        assert share.cpus
        assert set(share.cpus) <= node.devices[share.devices[0]].cpus
    used = [cpu for share in made.shares for cpu in share.cpus]
    assert len(used) == len(set(used)), "no core is given twice"
    golden(f"launch/{machine.name}.txt", f"{draw_node(node)}\n{draw(made)}\n")


@every
def test_ranks_of_several_gpus_take_those_of_one_socket(machine: Machine) -> None:
    node = topology(machine)
    made = bind(node, BindingRequest(2, devices=machine.gpus // 2))
    assert sorted(gpu for share in made.shares for gpu in share.devices) == list(
        range(machine.gpus)
    )
    if machine.sockets == 2:
        for share in made.shares:
            assert len({min(node.devices[gpu].cpus) // machine.cores for gpu in share.devices}) == 1
