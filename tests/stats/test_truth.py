"""These tests are the short form of ``make truth``: some hundred simulated studies of a kind."""

from __future__ import annotations

import pytest

from tests.stats.simulator import KINDS
from tests.stats.truth import MUST_BE_UNSTEADY, POWER, TRUTHS, promises_broken, tally, verdicts

EQUAL = [name for name, truth in TRUTHS.items() if not any(truth.effects)]
QUIET = [kind for kind in KINDS if kind in ("quiet", "bursts", "heavy tails", "drift of 2 %")]


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUAL)
def test_equal_cells_are_rarely_news_whatever_disturbs_them(name: str) -> None:
    told = tally(TRUTHS[name], 150)
    assert promises_broken(told, TRUTHS[name]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", POWER)
def test_differences_are_found_among_nineteen_cells_in_six_blocks(name: str) -> None:
    told = tally(TRUTHS[name], 150)
    assert told.power is not None
    assert told.power >= POWER[name] - 0.05
    assert promises_broken(told, TRUTHS[name]) == []


@pytest.mark.parametrize("kind", MUST_BE_UNSTEADY)
def test_what_changes_within_a_trial_is_unsteady(kind: str) -> None:
    assert verdicts(kind, 100)["unsteady"] >= 0.9


@pytest.mark.parametrize("kind", QUIET)
def test_what_stays_is_valid(kind: str) -> None:
    assert verdicts(kind, 100)["valid"] >= 0.95
