"""Hold the one axis of several nodes to clocks whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.store.dataset import Dataset
from harness.store.layout import TrialPaths
from harness.store.node_clocks import read_clocks
from tests.outcomes import seal
from tests.runs import RecordedCell, Recording, write_run

OWN = {"own": True, "exchanges": []}


def node(lead_ns: int, way_ns: int) -> dict[str, Any]:
    """Exchanges with a clock that is ahead, over ways that take equally long."""
    starts = (0, 10**9)
    took = [(t, t + way_ns + lead_ns, t + way_ns + lead_ns, t + 2 * way_ns) for t in starts]
    return {"own": False, "exchanges": took}


def test_moments_of_a_node_lie_where_the_hosts_clock_showed_them() -> None:
    clocks = read_clocks({"a": OWN, "b": node(500, 100)})
    assert clocks.host_ns("b", 1500) == pytest.approx(1000)
    assert clocks.node_ns("b", 1000) == pytest.approx(1500)
    assert clocks.host_ns("a", 1500) == clocks.node_ns("a", 1500) == 1500


def test_one_node_has_one_clock_and_nothing_to_be_wrong() -> None:
    assert read_clocks({}).bound_s(["a", "a"]) == 0


def test_between_two_nodes_both_may_be_off() -> None:
    clocks = read_clocks({"a": OWN, "b": node(500, 100), "c": node(9, 300)})
    assert clocks.bound_s("ab") == pytest.approx(100e-9)
    assert clocks.bound_s("bc") == pytest.approx(400e-9)
    assert clocks.bound_s("abc") == pytest.approx(400e-9)


def test_a_node_whose_clock_was_never_compared_is_unknown_and_not_zero() -> None:
    clocks = read_clocks({"a": OWN, "b": {"own": False, "exchanges": []}})
    assert clocks.bound_s("ab") is None


def test_windows_that_begin_before_others_ended_convict_the_clocks() -> None:
    clocks = read_clocks({"a": OWN, "b": node(500, 100)})
    windows = {0: ("a", [0, 1000], [990, 1990]), 1: ("b", [510, 1500], [1495, 2495])}
    assert clocks.contradicted_s(windows) is None, "5 ns are within the bound"
    early = {**windows, 1: ("b", [10, 1000], [995, 1995])}
    assert clocks.contradicted_s(early) == pytest.approx(490e-9)
    assert clocks.contradicted_s({0: windows[0], 1: ("a", *early[1][1:])}) is None


def test_the_bound_of_each_trial_can_be_asked_for(tmp_path: Path) -> None:
    write_run(tmp_path, [RecordedCell()], Recording(name="r", trials=2))
    outcome, _ = sorted(tmp_path.glob("r/cells/*/*/outcome.json"))
    told = json.loads(outcome.read_text())
    told["ranks"] = [{**told["ranks"][0], "rank": n, "host": host} for n, host in enumerate("ab")]
    outcome.write_text(json.dumps({**told, "clocks": {"a": OWN, "b": node(5, 2000)}}))
    seal(TrialPaths(outcome.parent))
    found = Dataset([tmp_path / "r"]).sql("SELECT clock_bound_s FROM trials ORDER BY trial").rows
    assert [row[0] for row in found] == [pytest.approx(2e-6), 0.0]
