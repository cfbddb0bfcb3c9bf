"""Hold what is said of taking turns to simulated machines on which turns leave something behind."""

from __future__ import annotations

import random
from math import log

import pytest

from harness.stats.turn_bias import FEWEST, TurnBias, is_known, turn_bias, widened
from tests.stats.bias_truth import MACHINES, POPULATIONS, Noise, seen, settled

NARROW = TurnBias(0.0, -0.001, 0.001, 100)


def test_nothing_is_said_of_fewer_than_twenty_comparisons() -> None:
    assert turn_bias([0.01] * (FEWEST - 1)) is None
    assert turn_bias([0.01] * FEWEST) == TurnBias(0.01, 0.01, 0.01, FEWEST)


def test_a_bias_is_known_once_it_is_to_a_per_cent() -> None:
    chance = random.Random(1)
    assert is_known([chance.gauss(0, 0.01) for _ in range(40)])
    assert not is_known([chance.gauss(0, 0.1) for _ in range(40)])
    assert is_known([chance.gauss(0, 0.1) for _ in range(400)])


def test_an_interval_is_drawn_out_to_the_ratio_of_rates_alone() -> None:
    slowed = TurnBias(-0.02, -0.03, -0.01, 40)
    each = (0.01**2 + 0.001**2) ** 0.5
    low, high = widened(0.15, 0.1, 0.2, cell=slowed, reference=NARROW)
    assert low == pytest.approx(0.1)
    assert high == pytest.approx(0.15 + 0.02 + (0.05**2 + each**2) ** 0.5)
    low, high = widened(0.15, 0.1, 0.2, cell=NARROW, reference=slowed)
    assert low == pytest.approx(0.15 - 0.02 - (0.05**2 + each**2) ** 0.5)
    assert high == pytest.approx(0.2)


def test_a_ratio_that_turns_do_not_move_keeps_its_interval_but_for_what_is_not_known() -> None:
    low, high = widened(0.0, -0.02, 0.02, cell=NARROW, reference=NARROW)
    assert (low, high) == pytest.approx((-0.02, 0.02), abs=1e-4)


def test_a_bias_within_three_per_cent_has_all_of_its_interval_there() -> None:
    assert TurnBias(0.0, -log(1.03), log(1.03), 20).is_within(0.03)
    assert not TurnBias(0.0, -0.001, 0.031, 20).is_within(0.03)


@pytest.mark.parametrize("noise", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("left", ["nothing", "as measured", "20 % for 0.1 s, of one cell"])
def test_the_interval_holds_the_ratio_of_rates_alone(noise: Noise, left: str) -> None:
    found = seen(settled, noise, POPULATIONS[left], studies=400)
    assert found.covered >= 0.93
    assert found.false <= 0.06
