"""These tests hold that trials which a cell loses give no false news of it."""

from __future__ import annotations

import pytest

from tests.stats.losses_truth import SETTINGS, Lossy, answers, false_share

STUDIES = 150


@pytest.mark.parametrize("setting", [one for one in SETTINGS if one.own and one.share >= 0.4])
def test_a_cell_that_loses_its_slow_trials_is_not_called_faster(setting: Lossy) -> None:
    plain, honest = answers(setting, STUDIES)
    assert false_share(plain, setting) > 0.25
    assert false_share(honest, setting) <= 0.05 + 3 * (0.05 * 0.95 / STUDIES) ** 0.5


@pytest.mark.parametrize("setting", [one for one in SETTINGS if not one.own and one.effect])
def test_trials_lost_at_random_cost_few_answers(setting: Lossy) -> None:
    plain, honest = answers(setting, STUDIES)
    assert honest["faster"] >= 0.85 * plain["faster"]
    assert honest["slower"] == 0
