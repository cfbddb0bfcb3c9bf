"""These tests hold that one may look at two cells after every block."""

from __future__ import annotations

from math import inf, log

import numpy as np
import pytest

from harness.stats.compare import compare, declared_looks
from harness.stats.moderated import smallest_p
from harness.stats.repetition import always_valid

NOISE = (0.004, -0.006, 0.001, 0.008, -0.003, -0.002)


@pytest.mark.parametrize("blocks", [4, 6, 20])
def test_the_interval_holds_the_differences_that_are_not_refuted(blocks: int) -> None:
    logs = list(0.05 + 0.01 * np.random.default_rng(blocks).standard_normal(blocks))
    low, high = always_valid.interval(logs, 0.05)
    for end in (low, high):
        assert always_valid.p_value([one - end for one in logs]) == pytest.approx(0.05)
    assert low < sum(logs) / blocks < high


def test_two_blocks_say_nothing_and_four_may() -> None:
    assert always_valid.interval([0.1, 0.1], 0.05) == (-inf, inf)
    told = compare({"a": [0.1 + noise for noise in NOISE[:4]]}, at_any_time=True)["a"]
    assert (told.answer, told.blocks) == ("faster", 4)


def test_what_is_open_says_how_many_more_blocks_would_tell() -> None:
    told = compare({"a": [10 * noise for noise in NOISE[:4]]}, at_any_time=True)["a"]
    assert told.answer == "cannot tell"
    assert told.more_blocks is not None


def test_looking_after_every_block_calls_equal_cells_news_in_fewer_than_one_of_twenty() -> None:
    chance = np.random.default_rng(8)
    studies, news = 300, 0
    for logs in 0.3 * chance.standard_normal((studies, 25)):
        row = logs.tolist()
        news += any(always_valid.p_value(row[:blocks]) <= 0.05 for blocks in range(3, 26))
    assert news / studies <= 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5


def test_five_per_cent_at_one_per_cent_noise_takes_about_five_blocks() -> None:
    chance = np.random.default_rng(9)
    took = []
    for row in (log(1.05) + 0.014 * chance.standard_normal((200, 30))).tolist():
        looks = range(3, 31)
        took.append(next(n for n in looks if always_valid.interval(row[:n], 0.05)[0] > 0))
    assert 4 <= np.mean(took) <= 5.5


@pytest.mark.parametrize("most", [6, 10, 30, 100])
def test_each_declared_look_at_several_cells_can_speak(most: int) -> None:
    looks = declared_looks(6, most)
    assert looks[-1] == most
    assert list(looks) == sorted(set(looks))
    assert all(smallest_p(look) <= 0.05 / len(looks) * (1 + 1e-9) for look in looks)


def test_thirty_blocks_allow_four_looks() -> None:
    assert declared_looks(6, 30) == (8, 12, 18, 30)
