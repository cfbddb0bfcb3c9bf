"""Hold the binding planner to what a person who knows the machine would say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.launch.binding import (
    MORE_RANKS_THAN_CORES,
    SHARED_WITH_OBSERVER,
    SHARES_CORES,
    BindingRequest,
    bind,
)
from harness.launch.profile_topology import read_synthetic
from harness.machine.topology import Device, MemoryNode, Topology, flat

KNL_SNC4 = read_synthetic("pack:1 numa:4(memory=24GB) l2:8 core:2 pu:4")
TWO_SOCKETS = read_synthetic("pack:2 numa:1 core:8 pu:2")


def with_memory(topology: Topology, kind: str) -> Topology:
    """Put fast memory beside every memory there is."""
    more = tuple(
        MemoryNode(len(topology.memories) + one.number, one.cpus, kind) for one in topology.memories
    )
    return replace(topology, memories=topology.memories + more)


def with_gpus(topology: Topology, per_node: int) -> Topology:
    """Hang GPUs on every memory domain, the last domain first."""
    near = [one.cpus for one in reversed(topology.memories) for _ in range(per_node)]
    return replace(topology, devices=tuple(Device(i, cpus) for i, cpus in enumerate(near)))


def test_three_cpus_leave_one_to_the_observer() -> None:
    made = bind(flat((4, 5, 6)), BindingRequest())
    assert (made.observer, made.ranks, made.marks) == (6, ((4, 5),), ())


@pytest.mark.parametrize("cpus", [(0,), (0, 1)])
def test_two_cpus_are_shared_with_the_observer_and_the_trial_says_so(cpus: tuple[int, ...]) -> None:
    made = bind(flat(cpus), BindingRequest())
    assert (made.observer, made.ranks, made.marks) == (None, (cpus,), (SHARED_WITH_OBSERVER,))


def test_a_platform_may_keep_no_core_or_several_for_its_observer() -> None:
    assert bind(flat(range(8)), BindingRequest(observer=0)).ranks == (tuple(range(8)),)
    assert bind(flat(range(8)), BindingRequest(observer=0)).marks == ()
    two = bind(flat(range(8)), BindingRequest(observer=2))
    assert (two.ranks, two.observer_cpus) == ((tuple(range(6)),), (6, 7))


def test_the_observers_core_is_kept_with_all_its_hardware_threads() -> None:
    made = bind(TWO_SOCKETS, BindingRequest())
    assert made.observer_cpus == (30, 31)
    assert not set(made.ranks[0]) & {30, 31}


def test_ranks_get_equal_shares_and_the_remainder_stays_idle() -> None:
    made = bind(flat(range(8)), BindingRequest(ranks=2))
    assert (made.ranks, made.idle) == (((0, 1, 2), (3, 4, 5)), (6,))


def test_more_ranks_than_cpus_are_refused_unless_asked_for() -> None:
    with pytest.raises(UsageError, match=r"4 ranks need more than the 2 CPUs.*\n.*oversubscribe"):
        bind(flat((0, 1)), BindingRequest(ranks=4))
    made = bind(flat((0, 1)), BindingRequest(ranks=4, oversubscribe=True))
    assert made.ranks == ((0, 1),) * 4
    assert made.marks == (SHARED_WITH_OBSERVER, MORE_RANKS_THAN_CORES)


def test_more_threads_than_cpus_are_refused_unless_asked_for() -> None:
    with pytest.raises(UsageError, match="2 ranks of 8 threads need more than the 14 CPUs"):
        bind(TWO_SOCKETS, BindingRequest(ranks=2, threads=8, hyper_threads=False, observer=2))
    made = bind(TWO_SOCKETS, BindingRequest(ranks=2, threads=20, oversubscribe=True))
    assert [share.threads for share in made.shares] == [20, 20]


def test_more_ranks_than_cores_take_hardware_threads_and_the_trial_says_so() -> None:
    made = bind(read_synthetic("core:2 pu:4"), BindingRequest(ranks=4))
    assert made.ranks == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert SHARES_CORES in made.marks


def test_a_rank_stays_in_one_sub_numa_cluster_of_knights_landing() -> None:
    made = bind(KNL_SNC4, BindingRequest(ranks=4, observer=4, hyper_threads=False))
    assert [len(share.cores) for share in made.shares] == [12, 12, 12, 12]
    assert [share.cpus[0] for share in made.shares] == [0, 64, 128, 192]
    assert made.shares[0].cpus == tuple(range(0, 48, 4)), "one hardware thread of each core"


def test_shares_are_whole_tiles_where_that_costs_little() -> None:
    knl = read_synthetic("numa:1 l2:32 core:2 pu:1")
    made = bind(knl, BindingRequest(ranks=4, observer=4))
    assert [len(cpus) for cpus in made.ranks] == [14] * 4, "15 cores would split a tile"
    small = bind(read_synthetic("numa:1 l2:4 core:2 pu:1"), BindingRequest(ranks=2, observer=1))
    assert [len(cpus) for cpus in small.ranks] == [3, 3], "a quarter of a rank is too much to lose"


def test_spread_ranks_alternate_between_sockets_and_compact_ones_fill_one() -> None:
    wish = BindingRequest(ranks=4, threads=2, hyper_threads=False, observer=0)
    assert [cpus[0] // 16 for cpus in bind(TWO_SOCKETS, wish).ranks] == [0, 0, 0, 0]
    spread = bind(TWO_SOCKETS, replace(wish, policy="spread"))
    assert [cpus[0] // 16 for cpus in spread.ranks] == [0, 1, 0, 1]


def test_without_a_policy_every_rank_may_run_everywhere() -> None:
    made = bind(flat(range(4)), BindingRequest(ranks=2, policy="none", observer=0))
    assert made.ranks == ((0, 1, 2, 3),) * 2
    assert "binding.policy is none" in made.marks[0]


def test_gpus_go_to_ranks_on_the_cpus_near_them() -> None:
    made = bind(with_gpus(TWO_SOCKETS, 2), BindingRequest(ranks=4, devices=1))
    assert [share.devices for share in made.shares] == [(2,), (3,), (0,), (1,)]
    assert [share.cpus[0] // 16 for share in made.shares] == [0, 0, 1, 1]


def test_two_ranks_on_one_sockets_gpus_leave_the_other_socket_alone() -> None:
    made = bind(with_gpus(TWO_SOCKETS, 2), BindingRequest(ranks=2, devices=1))
    assert [share.cpus[0] // 16 for share in made.shares] == [0, 0]


def test_more_accelerators_than_there_are_is_refused() -> None:
    with pytest.raises(UsageError, match="8 ranks with 1 accelerators each need 8; there are 4"):
        bind(with_gpus(TWO_SOCKETS, 2), BindingRequest(ranks=8, devices=1))


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("any", ()),
        ("local", ("--localalloc",)),
        ("fast-first", ("--preferred=4",)),
        ("fast-only", ("--membind=4",)),
        ("interleave", ("--interleave=0,4",)),
    ],
)
def test_each_memory_policy_is_an_option_of_numactl(policy: str, options: tuple[str, ...]) -> None:
    made = bind(with_memory(KNL_SNC4, "MCDRAM"), BindingRequest(ranks=4, memory=policy))
    assert made.shares[0].memory.options == options


def test_fast_memory_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no fast memory"):
        bind(KNL_SNC4, BindingRequest(memory="fast-first"))
    cached = replace(KNL_SNC4, memories=(replace(KNL_SNC4.memories[0], cache=2**34),))
    with pytest.raises(UsageError, match="is a cache, which all ranks use anyway"):
        bind(cached, BindingRequest(memory="fast-only"))


def test_pinned_threads_get_a_place_each_in_every_runtimes_words() -> None:
    made = bind(read_synthetic("core:3 pu:2"), BindingRequest(pinned=True))
    assert made.shares[0].variables == {
        "BAKEOFF_THREADS": "4",
        "OMP_NUM_THREADS": "4",
        "OMP_PLACES": "{0,1},{2,3}",
        "OMP_PROC_BIND": "close",
        "KMP_AFFINITY": "granularity=fine,proclist=[0,2,1,3],explicit",
    }


def test_a_quota_of_one_and_a_half_cpus_gives_one_thread_and_says_so() -> None:
    made = bind(flat((0, 1)), BindingRequest(quota=1.5))
    assert made.shares[0].threads == 1
    assert "a CPU quota stops its threads: 1.5 CPUs' worth on 2 CPUs" in made.marks


machines = st.builds(
    lambda packs, nodes, tiles, cores, ways: read_synthetic(
        f"pack:{packs} numa:{nodes} l2:{tiles} core:{cores} pu:{ways}"
    ),
    st.integers(1, 2),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 2),
    st.integers(1, 4),
)


@settings(deadline=None, max_examples=60)
@given(
    machines,
    st.integers(1, 9),
    st.integers(0, 3),
    st.sampled_from(["compact", "spread"]),
    st.booleans(),
)
def test_shares_are_disjoint_equal_complete_and_local(
    machine: Topology, ranks: int, observer: int, policy: str, hyper_threads: bool
) -> None:
    wish = BindingRequest(ranks, observer=observer, policy=policy, hyper_threads=hyper_threads)
    usable = machine.cpus if hyper_threads else tuple(core.cpus[0] for core in machine.cores)
    if ranks > len(usable) - (len(usable) // len(machine.cores)) * observer:
        return
    made = bind(machine, wish)
    taken = [cpu for share in made.ranks for cpu in share]
    assert len(set(taken)) == len(taken), "disjoint"
    assert len({len(share) for share in made.ranks}) == 1, "equal"
    everything = (*taken, *made.observer_cpus, *made.idle)
    assert sorted(everything) == list(machine.cpus), "complete"
    if ranks >= len(machine.memories) and len(machine.cores) >= 2 * (ranks + observer):
        homes = [{m.number for m in machine.near(share)} for share in made.ranks]
        assert all(len(home) == 1 for home in homes), "local"


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_fewer_than_memories_keep_to_one_socket_each(ranks: int) -> None:
    topology = read_synthetic("pack:2 numa:2 core:4 pu:2")
    package = {cpu: core.package for core in topology.cores for cpu in core.cpus}
    for share in bind(topology, BindingRequest(ranks)).shares:
        assert len({package[cpu] for cpu in share.cpus}) == 1


def test_accelerators_are_taken_from_both_sockets_where_one_has_too_few_cores() -> None:
    node = read_synthetic("pack:2 numa:1 core:2 pu:1")
    gpus = tuple(Device(i, node.memories[i // 4].cpus) for i in range(8))
    made = bind(replace(node, devices=gpus), BindingRequest(4, devices=1, observer=0))
    for share in made.shares:
        assert set(share.cpus) <= gpus[share.devices[0]].cpus
