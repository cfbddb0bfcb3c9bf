"""What a screen of nodes plans: each alone, each with the next one, all together."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from harness.doctor import node_screen
from harness.errors import UsageError
from harness.plan.plan import Plan, make_plan
from harness.platform.hardware import Storage
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


def test_two_nodes_are_refused() -> None:
    launcher: Any = SimpleNamespace(nodes=lambda *_: NODES[:2])
    with pytest.raises(UsageError, match="A screen takes 3 at least"):
        node_screen.session(WANTED, load_platform("mpi-cluster"), launcher)
