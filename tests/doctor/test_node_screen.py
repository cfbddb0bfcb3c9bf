"""What a screen of nodes plans: each alone, each with the next one, all together."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from harness.doctor import node_screen
from harness.errors import UsageError
from harness.plan.plan import Plan, make_plan
from harness.platform.hardware import Accelerators, Storage
from harness.platform.platform import Platform, load_platform

NODES = ("cn1", "cn2", "cn3")
WANTED = node_screen.Wanted("torch", "tinycnn", None, 6, "1 s")


def plan(framework: str, platform: Platform, *measures: str) -> Plan:
    """Plan a screen of three nodes."""
    wanted = node_screen.Wanted(framework, "tinycnn", None, 6, "1 s", measures)
    launcher: Any = SimpleNamespace(nodes=lambda *_: NODES)
    session = node_screen.session(wanted, platform, launcher)
    there = platform.model_copy(update={"nodes": len(NODES)})
    return make_plan(session.study, there)


def planned(framework: str, platform: Platform, *measures: str) -> set[tuple[str, str, int, Any]]:
    """Give workload, strategy, nodes and tier of every cell that would run."""
    found = plan(framework, platform, *measures)
    assert not found.holes, [hole.why for hole in found.holes]
    assert {cell.factors["node"] for cell in found.cells} == {1, 2, 3}
    return {
        (cell.workload, cell.strategy, cell.scale.nodes, cell.factors["tier"])
        for cell in found.cells
    }


def test_every_work_is_planned_and_none_left_out() -> None:
    platform = load_platform("mpi-cluster")
    scratch = {"scratch": Storage(path="/scratch")}
    assert planned("torch", platform.model_copy(update={"storage": scratch})) == {
        ("tinycnn", "none", 1, None),
        ("tinycnn/block/conv1/forward+backward", "none", 1, None),
        ("gemm", "none", 1, None),
        ("triad", "none", 1, None),
        ("storage-write", "none", 1, "scratch"),
        ("point-to-point", "ddp", 2, None),
        ("all-reduce", "ddp", 3, None),
    }


def test_no_block_is_spent_on_choosing_what_nodes_are_not_held_to() -> None:
    platform = load_platform("mpi-cluster")
    tiers = {name: Storage(path=f"/{name}") for name in ("scratch", "project")}
    assert {block for _, block in plan("torch", platform).order} == set(range(1, 7))
    several = plan("torch", platform.model_copy(update={"storage": tiers}))
    assert not several.holes, "two tiers leave no single cell of a node to be declared"


def test_what_only_sends_screens_the_network_alone() -> None:
    assert planned("mpi", load_platform("mpi-cluster")) == {
        ("point-to-point", "mpi", 2, None),
        ("all-reduce", "mpi", 3, None),
    }


def test_what_is_asked_for_is_planned_alone() -> None:
    platform = load_platform("mpi-cluster")
    assert planned("torch", platform, "pairs", "memory") == {
        ("triad", "none", 1, None),
        ("point-to-point", "ddp", 2, None),
    }


@pytest.mark.parametrize(
    ("measures", "words"),
    [
        (("pair",), "Did you mean 'pairs'"),
        (("together",), "names none of them"),
        (("disk",), "mpi on mpi-cluster cannot measure disk.\n    It can: pairs, together."),
        (("pairs", "train"), "cannot measure train."),
    ],
)
def test_measures_that_would_screen_nothing_are_refused(
    measures: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        planned("mpi", load_platform("mpi-cluster"), *measures)


def on_gpus(framework: str, *measures: str) -> dict[str, Any]:
    """Plan a screen of nodes of eight GPUs."""
    gpus = (Accelerators(model="H100", count=8),)
    found = plan(
        framework,
        load_platform(
            "mpi-cluster",
        ).model_copy(update={"accelerators": gpus}),
        *measures,
    )
    assert not found.holes, [hole.why for hole in found.holes]
    return {
        cell.workload: (
            cell.factors["device"],
            cell.scale.nodes,
            cell.scale.ranks_per_node,
            cell.factors["precision"],
        )
        for cell in found.cells
    }


def test_every_gpu_of_a_node_is_screened() -> None:
    assert on_gpus("torch") == {
        "tinycnn": ("gpu", 1, 8, "fp32"),
        "gemm": ("gpu", 1, 8, "bf16"),
        "triad": ("gpu", 1, 8, "bf16"),
        "point-to-point": ("gpu", 2, 1, "fp32"),
        "all-reduce": ("gpu", 3, 8, "fp32"),
    }
    assert {device for device, *_ in on_gpus("jax").values()} == {"gpu"}
    assert {device for device, *_ in on_gpus("mpi").values()} == {"cpu"}


def test_a_device_that_is_asked_for_is_taken_or_refused() -> None:
    launcher: Any = SimpleNamespace(nodes=lambda *_: NODES)
    there = load_platform("mpi-cluster")
    asked = node_screen.Wanted("mpi", "tinycnn", None, 6, "1 s", device="gpu")
    with pytest.raises(UsageError, match="--device gpu: "):
        node_screen.session(asked, there, launcher)
    asked = node_screen.Wanted("torch", "tinycnn", None, 6, "1 s", device="gpu")
    study = node_screen.session(asked, there, launcher).study
    found = make_plan(study, there.model_copy(update={"nodes": len(NODES)}))
    assert {cell.factors["device"] for cell in found.cells} == {"gpu"}


def test_two_nodes_are_refused() -> None:
    launcher: Any = SimpleNamespace(nodes=lambda *_: NODES[:2])
    with pytest.raises(UsageError, match="A screen takes 3 at least"):
        node_screen.session(WANTED, load_platform("mpi-cluster"), launcher)
