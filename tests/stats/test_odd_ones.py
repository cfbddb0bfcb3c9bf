"""Odd members are named, and of clean fleets almost never one."""

from __future__ import annotations

import numpy as np
import pytest

from harness.stats.odd_ones import odd_ones

FLEETS = 200
"""In CI; `python -m tests.stats.test_odd_ones 10000 [KIND]` draws the long form."""


def fleet(
    draw: np.random.Generator,
    members: int = 64,
    *,
    blocks: int = 6,
    between: float = 0.005,
    kind: str = "normal",
) -> np.ndarray:
    """Draw a clean fleet of three measures: members, blocks and trials differ, nobody is sick."""
    own = draw.standard_normal((3, members, 1)) * between
    moments = draw.standard_normal((3, 1, blocks)) * 0.05
    noise = draw.standard_normal((3, members, blocks))
    if kind == "heavy tails":
        noise = draw.standard_t(3, (3, members, blocks))
    elif kind == "bad moments":  # a tenth of all trials are far slower, in all measures
        noise -= 10 * (draw.random((1, members, blocks)) < 0.1)
    return own + moments + 0.02 * noise


def named_falsely(kind: str, between: float, fleets: int, shuffles: int) -> int:
    """Count the clean fleets of which anybody is named."""
    draw = np.random.default_rng(7)
    return sum(
        bool(odd_ones(fleet(draw, kind=kind, between=between), shuffles=shuffles).is_named.any())
        for _ in range(fleets)
    )


KINDS = ("normal", "heavy tails", "bad moments")


@pytest.mark.parametrize("kind", KINDS)
def test_of_clean_fleets_hardly_one_has_a_member_named(kind: str) -> None:
    # 19 of 200 is the upper 99 % bound of chance at 5 %.
    assert named_falsely(kind, 0.005, FLEETS, 79) <= 19


@pytest.mark.parametrize(("members", "slower"), [(3, 0.5), (8, 0.3), (64, 0.1)])
def test_a_member_that_is_slower_in_every_block_is_named_and_nobody_else(
    members: int, slower: float
) -> None:
    draw, found, others = np.random.default_rng(3), 0, 0
    for _ in range(10):
        table = fleet(draw, members)
        table[1, 2] -= slower
        named = odd_ones(table, shuffles=399).is_named
        found += int(named[1, 2])
        others += int(named.sum() - named[1, 2])
    assert found == 10
    assert others <= 1


def test_one_bad_moment_is_nobodys_fault() -> None:
    table = fleet(np.random.default_rng(5))
    table[:, 4, 0] -= 1.0
    table[:, 9, 3] -= 1.0
    assert not odd_ones(table, shuffles=199).is_named.any()


@pytest.mark.parametrize(("members", "blocks"), [(2, 6), (64, 5)])
def test_too_few_members_or_blocks_name_nobody(members: int, blocks: int) -> None:
    table = fleet(np.random.default_rng(5), members, blocks=blocks)
    table[0, 0] -= 1.0
    assert not odd_ones(table).is_named.any()


def test_gaps_are_left_out() -> None:
    table = fleet(np.random.default_rng(5))
    table[0, 3, 2] = np.nan
    table[0, 7] -= 0.3
    found = odd_ones(table, shuffles=199)
    assert found.is_named[0, 7]
    assert np.isfinite(found.deviation).all()


def test_a_member_of_which_nothing_was_seen_is_not_named_and_hides_no_other() -> None:
    table = fleet(np.random.default_rng(5))
    table[0, 3] = np.nan
    table[0, 7] -= 0.3
    found = odd_ones(table, shuffles=199)
    assert found.is_named[0, 7]
    assert not found.is_named[0, 3]


if __name__ == "__main__":
    import sys

    for one in sys.argv[2:] or KINDS:
        for spread in (0.0, 0.005, 0.03):
            count = named_falsely(one, spread, int(sys.argv[1]), 199)
            print(f"{one}, members differ by {spread:.1%}: {count} of {sys.argv[1]}", flush=True)
