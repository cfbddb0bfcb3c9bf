"""A plan counts what the gate examines beside the network: feeds, and ranks that train together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.plan.duration import estimate
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.study.study import load_study

STUDY = """
title = "Fed"
[matrix]
workload = "tinycnn"
framework = "tensorflow"
{}
[measure]
trials = 1
warmup = "3 steps"
until = "5 steps"
"""
FILES = 'input = "files"\nreader = "tf-data"\nshuffle = "file"\nbuffer_samples = 64\n'
TOGETHER = 'strategy = "multiworker"\nranks_per_node = 2\n'

Seconds = Callable[[str], float]


@pytest.fixture
def gate_s(tmp_path: Path) -> Seconds:
    """Say what the gate of a study is expected to take."""

    def expected(factors: str) -> float:
        path = tmp_path / "study.toml"
        path.write_text(STUDY.format(factors))
        platform = load_platform("local")
        binding = platform.binding.model_copy(update={"oversubscribe": True})
        platform = platform.model_copy(update={"binding": binding})
        return estimate(make_plan(load_study(str(path)), platform)).gate_s

    return expected


def test_a_feed_is_counted_twice_where_its_order_is_to_come_again(gate_s: Seconds) -> None:
    plain, fed, again = map(gate_s, ("", f'{FILES}format = "raw"', f'{FILES}format = "tfrecord"'))
    assert fed > plain + 5
    assert again - plain == pytest.approx(2 * (fed - plain))


def test_cells_of_one_network_share_its_examination_not_their_feeds(gate_s: Seconds) -> None:
    plain, fed, both = map(
        gate_s, ("", f'{FILES}format = "raw"', f'{FILES}format = ["raw", "tfrecord"]')
    )
    assert both - plain == pytest.approx(3 * (fed - plain))


def test_ranks_that_train_together_are_counted(gate_s: Seconds) -> None:
    assert gate_s(TOGETHER) > gate_s("") + 10
