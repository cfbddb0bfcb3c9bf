"""Read recorded topologies of real machines, and what hostile files would do to us.

The recordings lie outside the project: ``BAKEOFF_TOPOLOGIES``, or ``shared/topologies`` beside it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.launch.binding import BindingRequest, bind
from harness.launch.binding_request import wish
from harness.launch.binding_text import draw, draw_node
from harness.launch.profile_topology import claimed, read_synthetic
from harness.machine.hwloc_topology import read_hwloc
from harness.machine.topology import Device, Topology
from harness.platform.platform import load_platform
from harness.worker.scale import Scale

FOLDER = Path(
    os.environ.get("BAKEOFF_TOPOLOGIES") or Path(__file__).parents[3] / "shared" / "topologies"
)

MINIMAL = """<?xml version="1.0"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0"><object type="Machine" cpuset="0x3" allowed_cpuset="0x1">
 <object type="NUMANode" os_index="0" cpuset="0x3" local_memory="1024"/>
 <object type="NUMANode" os_index="1" cpuset="0x0" subtype="MCDRAM" local_memory="512"/>
 <object type="Core" cpuset="0x1"><object type="PU" os_index="0"/></object>
 <object type="Core" cpuset="0x2"><object type="PU" os_index="1"/></object>
</object></topology>"""


def recorded(name: str) -> Topology:
    path = FOLDER / f"{name}.xml"
    if not path.exists():
        pytest.skip(f"{path} is missing; BAKEOFF_TOPOLOGIES names the folder of recordings")
    return read_hwloc(path.read_text(), name)


@pytest.mark.parametrize(
    ("name", "wish", "picture"),
    [
        (
            "knl-snc4-hybrid",
            BindingRequest(4, memory="fast-first", hyper_threads=False),
            "knl-snc4-hybrid",
        ),
        ("knl-a2a-cache", BindingRequest(2, hyper_threads=False, pinned=True), "knl-a2a-cache"),
        ("knl-7210-cpuid", BindingRequest(4, observer=4, hyper_threads=False), "knl-7210"),
        ("power8-p100-nvlink", BindingRequest(4, devices=1, observer=0), "power8-p100"),
        ("dgx2-16gpu-nvswitch", BindingRequest(2, devices=8), "dgx2"),
        ("xeon-max-9460-cpuid", BindingRequest(2, hyper_threads=False), "xeon-max"),
        ("memory-side-caches", BindingRequest(4), "memory-side-caches"),
        ("epyc-cgroup2-share", BindingRequest(2), "epyc-share"),
    ],
)
def test_the_map_of_a_recorded_machine_is_as_accepted(name, wish, picture, golden) -> None:
    topology = recorded(name)
    golden(f"launch/{picture}.txt", f"{draw_node(topology)}\n{draw(bind(topology, wish))}\n")


def test_only_the_allowed_share_of_a_machine_is_bound_to() -> None:
    topology = read_hwloc(MINIMAL)
    assert topology.cpus == (0,)
    assert bind(topology, BindingRequest(memory="fast-first")).shares[0].memory.options == (
        "--preferred=1",
    )


CUBE_MESH = """
 X  NV1 NV2 NV1 SYS SYS SYS NV2
NV1  X  NV1 NV2 SYS SYS NV2 SYS
NV2 NV1  X  NV2 SYS NV1 SYS SYS
NV1 NV2 NV2  X  NV1 SYS SYS SYS
SYS SYS SYS NV1  X  NV2 NV2 NV1
SYS SYS NV1 SYS NV2  X  NV1 NV2
SYS NV2 SYS SYS NV2 NV1  X  NV1
NV2 SYS SYS SYS NV1 NV2 NV1  X
"""
"""As `nvidia-smi topo -m` printed it on a node of 8 V100-SXM2, from a public repository's notes."""


def test_a_cube_mesh_of_eight_gpus_gives_each_rank_a_gpu_of_its_socket(golden) -> None:
    rows = [line.split() for line in CUBE_MESH.strip().splitlines()]
    links = {(a, b): rows[a][b] for a in range(8) for b in range(a + 1, 8) if rows[a][b] != "SYS"}
    node = read_synthetic("pack:2 numa:1 core:20 pu:2")
    gpus = tuple(Device(i, node.memories[i // 4].cpus, "V100-SXM2") for i in range(8))
    topology = replace(node, devices=gpus, links=links)
    made = bind(topology, BindingRequest(8, devices=1))
    assert [share.devices for share in made.shares] == [(i,) for i in range(8)]
    assert all(set(share.cpus) <= gpus[i].cpus for i, share in enumerate(made.shares))
    golden("launch/cube-mesh.txt", f"{draw_node(topology)}\n{draw(made)}\n")


@pytest.mark.parametrize("name", ["knl-7250-flat", "cori-knl", "summit", "xeon-max-flat"])
def test_the_map_of_a_catalogued_machine_is_as_accepted(name: str, golden) -> None:
    platform = load_platform(name)
    topology = claimed(platform)
    assert topology is not None
    scale = Scale(ranks_per_node=6 if topology.devices else 4)
    wanted = wish(platform, scale, {"device": "gpu"}, devices=len(topology.devices))
    made = bind(topology, wanted)
    golden(f"launch/{name}.txt", f"{draw_node(topology)}\n{draw(made)}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no xml", "is no XML"),
        ("<topology version='2.0'/>", "no topology of hwloc 2"),
        (
            '<!DOCTYPE t [<!ENTITY a "aaaa">]><topology>&a;</topology>',
            "declares XML entities, which no hwloc file does",
        ),
        (
            '<!DOCTYPE t [<!ENTITY a SYSTEM "file:///etc/passwd">]><topology>&a;</topology>',
            "declares XML entities",
        ),
        (MINIMAL.replace('allowed_cpuset="0x1"', 'allowed_cpuset="0x0"'), "names no CPU"),
    ],
)
def test_a_file_that_is_no_topology_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_hwloc(text, "odd.xml")


def test_a_synthetic_string_lists_levels_from_the_outside_in() -> None:
    topology = read_synthetic("pack:2 numa:2(memory=24GB) l2:2 core:2 pu:4")
    assert len(topology.cpus) == 64
    assert [one.size for one in topology.memories] == [24 * 10**9] * 4
    assert topology.cores[1].cpus == (4, 5, 6, 7)
    assert topology.cores[0].l2 == topology.cores[1].l2 != topology.cores[2].l2
    assert {core.package for core in topology.cores} == {0, 1}
    attached = read_synthetic("pack:1 [numa(memory=16GB)] core:17 pu:4")
    assert len(attached.memories) == 1


@pytest.mark.parametrize("text", ["pack:2 core:2", "pack:2 kernel:3 pu:1", "", "pack:two pu:1"])
def test_a_broken_synthetic_string_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_synthetic(text)
