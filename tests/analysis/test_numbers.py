"""Numbers carry the digits their interval deserves, and a unit."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis import numbers
from harness.verdicts.results import Interval, inverse


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (31.92, 30.41, 33.02, ("31.9", "[30.4, 33.0]")),
        (31.2, 30.8, 31.6, ("31.2", "[30.8, 31.6]")),
        (5209.6, 5148.2, 5229.1, ("5,210", "[5,150, 5,230]")),
        (
            1317453518.0,
            1300208962.0,
            1364688680.0,
            ("1,320,000,000", "[1,300,000,000, 1,360,000,000]"),
        ),
        (25.1234, 25.1212, 25.1256, ("25.123", "[25.121, 25.126]")),
        (0.012345, 0.0121, 0.0126, ("0.0123", "[0.0121, 0.0126]")),
    ],
)
def test_a_value_and_its_interval_share_their_decimals(value, low, high, text):
    assert numbers.with_interval(value, Interval(low, high, 0.969, "")) == text


@pytest.mark.parametrize(
    ("value", "text"), [(12345.0, "12,300"), (0.5, "0.500"), (-2.0, "−2.00"), (0.0, "0.0")]
)
def test_a_number_alone_has_three_significant_digits(value, text):
    assert numbers.number(value) == text


@pytest.mark.parametrize("say", [numbers.number, numbers.seconds, numbers.size, numbers.share])
def test_unknown_is_a_dash(say):
    assert say(None) == "–"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0005, "500 µs"),
        (0.497, "497 ms"),
        (90.0, "90.0 s"),
        (1200.0, "20.0 min"),
        (4e4, "11.1 h"),
    ],
)
def test_durations_come_in_the_unit_people_say_them_in(value, text):
    assert numbers.seconds(value) == text


def test_memory_is_given_in_binary_units():
    assert numbers.size(900 * 2**20) == "900 MiB"


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_no_number_prints_as_zero_or_loses_more_than_half_a_per_cent(value):
    shown = float(numbers.number(value).replace(",", ""))
    assert math.isclose(shown, value, rel_tol=0.00501)


def test_the_interval_of_a_turned_ratio_is_turned_too():
    turned = inverse(Interval(0.5, 0.8, 0.95, "m"))
    assert (turned.low, turned.high) == (1.25, 2.0)


def test_what_rounds_up_to_a_power_of_ten_has_no_digit_more_than_its_neighbour():
    assert [numbers.ratio(one) for one in (0.997, 0.99996, 1.0004)] == ["0.997", "1.00", "1.00"]
    assert numbers.number(9.997) == "10.0"
    assert numbers.number(-99.96) == "−100"
