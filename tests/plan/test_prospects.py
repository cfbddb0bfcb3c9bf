"""Hold what a plan says that it can tell to what its comparisons then tell."""

from __future__ import annotations

from collections.abc import Callable
from math import log1p

import pytest

from harness.plan.plan import Plan
from harness.plan.prospects import prospects
from harness.stats.power import BLOCKS, COMPARED, OFTEN, smallest_difference
from tests.stats.power_table import smallest

Planned = Callable[..., Plan]
TWO = """\
title = "T"
[matrix]
workload = "tinycnn"
framework = "torch"
batch = [16, 32]
"""


def test_a_plan_of_six_blocks_says_how_small_a_difference_it_finds(planned: Planned) -> None:
    told = prospects(planned(f"{TWO}[measure]\ntrials = 6\n"))
    assert told is not None
    small = smallest_difference(1, 6, 0.01) * 100
    assert f"{small:.2g} % where they scatter by 1 %" in told


def test_a_plan_of_three_blocks_says_that_it_can_never_compare(planned: Planned) -> None:
    told = prospects(planned(f"{TWO}[measure]\ntrials = 3\n"))
    assert told is not None
    assert "takes 6 blocks, and measure.trials is 3" in told


def test_a_cell_alone_has_nothing_to_be_compared_with(planned: Planned) -> None:
    assert prospects(planned(TWO.replace("[16, 32]", "16"))) is None


def test_more_cells_and_fewer_blocks_never_find_smaller_differences() -> None:
    for compared in range(2, 60):
        for blocks in range(7, 40):
            here = smallest_difference(compared, blocks, 0.01)
            assert here >= smallest_difference(compared - 1, blocks, 0.01) * (compared > 2)
            assert here <= smallest_difference(compared, blocks - 1, 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("compared", [1, 5, 20])
@pytest.mark.parametrize("blocks", [6, 10])
def test_the_table_is_what_the_method_finds(compared: int, blocks: int) -> None:
    assert compared in COMPARED
    assert blocks in BLOCKS
    assert 0.5 < OFTEN < 1
    told = log1p(smallest_difference(compared, blocks, 1e-3)) / 1e-3
    assert told == pytest.approx(smallest(compared, blocks, 1500), rel=0.08)
