"""How far cells scale is answered by efficiency, where it falls below 80 %, and node-hours."""

from __future__ import annotations

import dataclasses

import pytest

from harness.analysis.results import Results
from harness.analysis.scaling.efficiency import in_words, too_efficient
from harness.analysis.scaling.scaling import scaling, scaling_lines
from harness.analysis.tables import records
from reports.text.terminal import render
from tests.reports import samples

LOSSES = {1: 1.0, 2: 0.96, 4: 0.9, 8: 0.7}


def _scaled(efficiencies: dict[int, float], spread: float = 0.0) -> Results:
    """One cell on so many nodes, each block off by the spread to one side or the other."""
    cells = []
    for nodes, share in efficiencies.items():
        rate = 400.0 * nodes * share
        one = samples.cell("resnet50", "torch", "bf16", rate, None)
        strategy = "ddp" if nodes > 1 else "none"
        trials = tuple(
            dataclasses.replace(t, rate=rate * (1 + spread * (-1) ** t.block * (nodes > 1)))
            for t in one.trials
        )
        cells.append(
            dataclasses.replace(
                one,
                key=f"{one.key}{nodes}",
                strategy=strategy,
                trials=trials,
                rate=one.rate and dataclasses.replace(one.rate, value=rate),
                epoch_s=one.epoch_s and dataclasses.replace(one.epoch_s, value=720_000 / rate),
                factors={**one.factors, "strategy": strategy, "nodes": nodes},
                scale=dataclasses.replace(one.scale, nodes=nodes),
            )
        )
    return dataclasses.replace(
        samples.demo(), cells=tuple(cells), varied=("strategy", "nodes"), warnings=(), holes=()
    )


def test_the_answer_is_efficiency_where_it_is_lost_and_what_it_costs():
    (line,) = scaling_lines(_scaled(LOSSES))
    assert in_words(line) == (
        "70.0 % (interval 70.0–70.0 %) efficient at 8 nodes against 1 node. "
        "It falls below 80 % at 8 nodes. An epoch takes 0.714 node-hours at 8, 0.500 at 1 node."
    )


def test_what_little_work_costs_is_said_in_seconds():
    cells = [
        dataclasses.replace(one, epoch_s=dataclasses.replace(one.epoch_s, value=2.0))
        for one in _scaled(LOSSES).cells
    ]
    (line,) = scaling_lines(dataclasses.replace(_scaled(LOSSES), cells=tuple(cells)))
    assert in_words(line).endswith("An epoch takes 16.0 node-seconds at 8, 2.00 at 1 node.")


def test_devices_are_counted_where_a_node_has_several():
    scaled = _scaled(LOSSES)
    cells = [
        dataclasses.replace(one, scale=dataclasses.replace(one.scale, devices_per_rank=2))
        for one in scaled.cells
    ]
    (line,) = scaling_lines(dataclasses.replace(scaled, cells=tuple(cells)))
    assert "efficient at 16 devices against 2 devices." in in_words(line)


def test_what_stays_efficient_says_how_far_that_is_known():
    (line,) = scaling_lines(_scaled({1: 1.0, 2: 0.96, 4: 0.93}))
    assert "It stays above 80 % up to there, the most that was measured." in in_words(line)


def test_an_interval_on_both_sides_of_80_per_cent_cannot_tell():
    (line,) = scaling_lines(_scaled({1: 1.0, 2: 0.8}, spread=0.05))
    assert "Whether it is below 80 % at 2 nodes cannot be told: 79.9 %" in in_words(line)


def test_only_what_surely_is_above_102_per_cent_is_warned_of():
    (warning,) = too_efficient(_scaled({1: 1.0, 2: 1.08, 4: 1.01}))
    assert "resnet50, torch ddp" in warning
    assert "108.0 %" in warning
    assert "at 2 nodes" in warning
    assert not list(too_efficient(_scaled({1: 1.0, 2: 1.08}, spread=0.2)))


def test_node_hours_are_the_nodes_times_their_time():
    rows = records(scaling(_scaled(LOSSES)))
    assert [row["nodes"] for row in rows] == [1, 2, 4, 8]
    assert rows[0]["node_hours_per_epoch"] == pytest.approx(0.5)
    assert rows[3]["node_hours_per_epoch"] == pytest.approx(0.5 / 0.7)
    assert rows[0]["node_hours_per_million"] == pytest.approx(1e6 / 400 / 3600)


def test_a_terminal_says_how_far_it_scales():
    told = " ".join(render(_scaled(LOSSES)).split())
    assert "How far it scales:" in told
    assert "It falls below 80 % at 8 nodes." in told
