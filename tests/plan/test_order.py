"""Hold the order of trials to its laws: balanced blocks, seeded, independent."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from harness.plan.order import interleaved

KEYS = st.lists(st.text("0123456789abcdef", min_size=4, max_size=4), min_size=1, unique=True)


@given(KEYS, st.integers(1, 8), st.integers(0, 2**32))
def test_each_block_holds_every_cell_once_and_blocks_follow_each_other(
    keys: list[str], trials: int, seed: int
) -> None:
    order = interleaved(keys, trials=trials, seed=seed)
    assert Counter(order) == {(key, block): 1 for key in keys for block in range(1, trials + 1)}
    assert [block for _, block in order] == sorted(block for _, block in order)


@given(KEYS, st.integers(1, 8), st.integers(0, 2**32), st.randoms())
def test_the_seed_alone_decides_the_order(
    keys: list[str], trials: int, seed: int, shuffle: random.Random
) -> None:
    order = interleaved(keys, trials=trials, seed=seed)
    shuffle.shuffle(keys)
    assert interleaved(keys, trials=trials, seed=seed) == order


@given(KEYS, st.integers(1, 8), st.integers(0, 2**32))
def test_taking_a_cell_away_leaves_the_order_of_the_others(
    keys: list[str], trials: int, seed: int
) -> None:
    order = interleaved(keys, trials=trials, seed=seed)
    fewer = interleaved(keys[1:], trials=trials, seed=seed)
    assert fewer == tuple(one for one in order if one[0] != keys[0])


def test_a_pilot_runs_before_the_first_block_and_leaves_its_order_alone() -> None:
    order = interleaved(["a", "b", "c"], trials=2, seed=1, piloted=["a", "b"])
    assert sorted(order[:2]) == [("a", 0), ("b", 0)]
    assert order[2:] == interleaved(["a", "b", "c"], trials=2, seed=1)


def test_blocks_are_shuffled_each_by_itself() -> None:
    keys = [f"cell{number}" for number in range(6)]
    order = interleaved(keys, trials=40, seed=1)
    blocks = {tuple(key for key, block in order if block == number) for number in range(1, 41)}
    assert len(blocks) > 30
    first = Counter(block[0] for block in blocks)
    assert set(first) == set(keys)
    assert interleaved(keys, trials=40, seed=2) != order
