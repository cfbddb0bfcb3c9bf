"""Hold what a plan says that it can tell to what its comparisons then tell."""

from __future__ import annotations

from collections.abc import Callable
from math import log1p

import numpy as np
import pytest

from harness.plan.plan import Plan
from harness.plan.power.prospects import KnownNoise, compared_at_most, prospects, warnings
from harness.plan.two_sides import Side, two_sided
from harness.stats.compare import compare
from harness.stats.power import OFTEN, power, smallest_difference

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


def test_of_two_sides_every_pair_is_counted_and_no_cell_of_a_is(planned: Planned) -> None:
    side = planned(f"{TWO}[measure]\ntrials = 6\n")
    both = two_sided("both", Side("one", side, None), Side("two", side, None))
    assert (compared_at_most(side), compared_at_most(both)) == (1, 2)


def test_a_plan_of_three_blocks_warns_that_it_can_never_compare(planned: Planned) -> None:
    plan = planned(f"{TWO}[measure]\ntrials = 3\n")
    assert prospects(plan) is None
    (told,) = warnings(plan)
    assert "an answer takes 6 blocks, and measure.trials is 3" in told


def test_what_the_machine_scattered_by_decides_what_is_promised(planned: Planned) -> None:
    plan = planned(f"{TWO}[measure]\ntrials = 6\n")
    told = prospects(plan, KnownNoise(0.01, 3, is_of_these_cells=True))
    assert told is not None
    assert told.startswith("What it can tell: 5 % between a cell and the reference, 9 times in 10")
    assert "where trials scatter by 1 %, as those of these cells did in 3 earlier runs" in told
    assert warnings(plan, KnownNoise(0.01, 3, is_of_these_cells=True)) == ()
    (warned,) = warnings(plan, KnownNoise(0.3, 1, is_of_these_cells=False))
    assert warned.startswith('expect "cannot tell"')


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('stop = "answered"', "by block 30"),
        ('stop = "answered"\ntrials_at_most = 12', "by block 12"),
        ('stop = "answered"\ntrials_at_most = 5', None),
        ('until_interval = "2 %"', None),
    ],
)
def test_a_plan_until_it_is_answered_says_what_its_last_look_finds(
    planned: Planned, more: str, says: str | None
) -> None:
    told = prospects(planned(f"{TWO}[measure]\n{more}\n"))
    assert (told is None) == (says is None)
    assert says is None or says in str(told)


def test_power_grows_from_nothing_to_certainty() -> None:
    found = [power(2, 8, size / 1000, 0.01) for size in range(1, 60)]
    assert found == sorted(found)
    assert found[0] < 0.05
    assert found[-1] >= 0.99
    at = smallest_difference(2, 8, 0.01)
    assert power(2, 8, at, 0.01) == pytest.approx(OFTEN)


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
    """Plant the differences of the table, and count how often they are found."""
    noise, studies = 0.01, 300 // compared + 40
    chance = np.random.default_rng((compared, blocks, 1))
    for share in (0.5, OFTEN):
        effect = log1p(smallest_difference(compared, blocks, noise, share=share))
        found = 0
        for _ in range(studies):
            trials = noise * chance.standard_normal((compared + 1, blocks))
            rows = {str(at): list(row + effect) for at, row in enumerate(trials[1:] - trials[0])}
            told = compare(rows, equivalence=1e-9).values()
            found += sum(one.answer == "faster" for one in told)
        error = (share * (1 - share) / studies) ** 0.5  # cells of a study are not independent
        assert found / studies / compared == pytest.approx(share, abs=3.5 * error)
