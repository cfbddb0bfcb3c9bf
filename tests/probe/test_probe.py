"""Probe machines laid out in a folder, and this one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.machine.gpus import graph
from harness.machine.surroundings import read_cloud, read_network, read_tiers
from harness.machine.sysfs_topology import read_topology
from harness.platform.platform import load_platform
from harness.platform.sources import hardware_leaves
from harness.probe.check import compare, facts, is_other_machine
from harness.probe.probe import look, profile, summary
from harness.toml.write import toml_text
from tests.probe.fake_nvml import nvml
from tests.probe.machine import FakeMachine


@pytest.fixture
def fake(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path / "machine")


def test_a_probe_and_a_check_of_this_machine_agree(tmp_path: Path) -> None:
    seen = look()
    path = tmp_path / "here.toml"
    path.write_text(toml_text(profile(seen, "here")))
    here = load_platform(str(path))
    rows = compare(here, seen)
    assert rows
    assert {row.state for row in rows} <= {"agrees", "not seen"}
    assert is_other_machine(here, seen) is None
    assert here.node.cpus == len(os.sched_getaffinity(0))


def test_every_value_of_a_probe_says_where_it_is_from(tmp_path: Path) -> None:
    path = tmp_path / "here.toml"
    path.write_text(toml_text(profile(look(), "here")))
    here = load_platform(str(path))
    for place, value in hardware_leaves(here.model_dump(exclude_none=True)):
        assert value == () or place in here.sources, place


def test_a_control_group_is_reported_as_its_share_and_not_the_node(fake: FakeMachine) -> None:
    fake.cpus(28, 2)
    fake.memory(("0-55", 384, "10"))
    fake.group(cpu="150000 100000", memory=str(64 * 2**30))
    seen = look((), fake.root, fake.told(range(12)))
    node = profile(seen, "minna")["node"]
    assert (node["cores"], node["cpus"], node["cpu_quota"]) == (28, 12, 1.5)
    assert node["memory_share"] == "64 GiB"
    assert node["memory"] == [{"kind": "DDR", "size": "384 GiB"}]
    assert "your share: 1.5 CPUs, 64 GiB of 384 GiB" in summary(seen)[0]
    offers = facts(seen).offers()
    assert (offers["cpus"], offers["memory"]) == (12, 64 * 2**30)


def test_a_quota_an_accelerator_and_a_folder_that_are_not_there_differ(
    fake: FakeMachine, tmp_path: Path
) -> None:
    fake.cpus(4, 1)
    fake.memory(("0-3", 8, "10"))
    seen = look((), fake.root, fake.told(range(4)))
    path = tmp_path / "claim.toml"
    path.write_text(
        'title = "x"\n[node]\ncores = 4\ncpu_quota = 1.5\nmemory_share = "4 GiB"\n'
        '[[accelerators]]\nmodel = "P100"\ncount = 4\n[storage.s]\npath = "/no/such/folder"\n'
    )
    states = {row.place: row.state for row in compare(load_platform(str(path)), seen)}
    assert states.pop("node.cores") == "agrees"
    assert set(states.values()) == {"differs"}


def test_mcdram_in_flat_mode_is_found_as_memory_without_cpus(fake: FakeMachine) -> None:
    fake.cpus(8, 4, per_l2=2, model="Intel(R) Xeon Phi(TM) CPU 7250 @ 1.40GHz")
    fake.memory(("0-31", 96, "10 31"), ("", 16, "31 10"))
    node = profile(look((), fake.root, fake.told(range(32))), "knl")["node"]
    assert node["memory"] == [
        {"kind": "DDR", "size": "96 GiB"},
        {"kind": "MCDRAM", "size": "16 GiB", "mode": "flat"},
    ]
    assert node["numa_distances"] == [[10, 31], [31, 10]]
    assert (node["threads_per_core"], node["cores_per_l2"]) == (4, 2)
    near = read_topology(range(32), root=fake.root).memories[1]
    assert (near.kind, near.cpus) == ("MCDRAM", frozenset(range(32)))


def test_the_memory_of_a_gpu_beside_grace_is_none_that_ranks_are_bound_to(
    fake: FakeMachine,
) -> None:
    fake.cpus(72, 1)
    fake.memory(("0-71", 480, "10 80 80"), ("", 96, "80 10 255"), ("", 0, "80 255 10"))
    gpu = "proc/driver/nvidia/gpus/0009:01:00.0"
    fake.write(f"{gpu}/numa_status", "Node:                   1\nStatus:                 online")
    node = profile(look((), fake.root, fake.told(range(72))), "gh200")["node"]
    assert node["memory"] == [{"kind": "DDR", "size": "480 GiB"}]
    assert [one.number for one in read_topology(range(72), root=fake.root).memories] == [0]


def test_memory_without_cpus_that_is_larger_than_the_rest_is_not_fast(fake: FakeMachine) -> None:
    fake.cpus(4, 1)
    fake.memory(("0-3", 64, "10 20"), ("", 512, "20 10"))
    assert [one.kind for one in read_topology(range(4), root=fake.root).memories] == ["DDR"] * 2


def test_a_memory_side_cache_is_a_tier_in_cache_mode(fake: FakeMachine) -> None:
    fake.cpus(4, 1, model="Intel(R) Xeon(R) CPU Max 9460")
    fake.memory(("0-3", 256, "10"))
    fake.write("sys/devices/system/node/node0/memory_side_cache/index1/size", str(64 * 2**30))
    node = profile(look((), fake.root, fake.told(range(4))), "max")["node"]
    assert node["memory"][1] == {"kind": "HBM", "size": "64 GiB", "mode": "cache"}


def test_infiniband_comes_before_ethernet_and_says_its_rate(fake: FakeMachine) -> None:
    fake.write("sys/class/net/eth0/device/vendor", "x")
    fake.write("sys/class/net/eth0/operstate", "up")
    fake.write("sys/class/net/eth0/speed", "1000")
    ethernet = read_network(fake.root)
    assert ethernet is not None
    assert (ethernet.name, ethernet.bytes_per_s) == ("Ethernet", 125e6)
    port = "sys/class/infiniband/mlx5_0/ports/1"
    fake.write(f"{port}/state", "4: ACTIVE")
    fake.write(f"{port}/rate", "200 Gb/sec (4X HDR)")
    fake.write(f"{port}/link_layer", "InfiniBand")
    fabric = read_network(fake.root)
    assert fabric is not None
    assert (fabric.name, fabric.interface) == ("InfiniBand HDR", "mlx5_0")
    assert fabric.bytes_per_s == 25e9


def test_the_instance_type_of_a_cloud_is_part_of_the_claim(fake: FakeMachine) -> None:
    fake.write("sys/class/dmi/id/sys_vendor", "Amazon EC2")
    fake.write("sys/class/dmi/id/product_name", "p4d.24xlarge")
    assert read_cloud(fake.root) == "p4d.24xlarge"
    fake.write("sys/class/dmi/id/sys_vendor", "QEMU")
    assert read_cloud(fake.root) is None


def test_storage_is_found_by_its_kind_where_the_user_may_write(
    fake: FakeMachine, tmp_path: Path
) -> None:
    scratch = tmp_path / "lustre"
    scratch.mkdir()
    fake.write("proc/mounts", f"mds@o2ib:/fs {scratch} lustre rw 0 0")
    (tier,) = read_tiers({str(scratch): 2**40}, root=fake.root)
    assert (tier.name, tier.kind, tier.roles) == ("scratch", "Lustre", ("data", "checkpoint"))


def test_a_profile_of_another_machine_is_not_compared() -> None:
    words = is_other_machine(load_platform("summit"), look())
    assert words is None or "its architecture is ppc64le" in words


def test_bonded_nvlinks_are_counted_and_the_rest_goes_over_the_system() -> None:
    pairs = nvml([["gpu1", "gpu1"], ["gpu0", "gpu0"], ["gpu3"], ["gpu2"]])
    assert {(a, b): link for a, b, link in graph(pairs)} == {
        ("0", "1"): "NV2",
        ("0", "2"): "SYS",
        ("0", "3"): "SYS",
        ("1", "2"): "SYS",
        ("1", "3"): "SYS",
        ("2", "3"): "NV1",
    }


def test_gpus_at_one_switch_are_joined_by_it() -> None:
    assert graph(nvml([["switch"] * 6, ["switch"] * 6])) == (("0", "1", "NVSwitch"),)
