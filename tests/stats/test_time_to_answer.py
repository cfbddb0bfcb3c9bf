"""These tests hold how answers of planted differences are judged, kept and drawn again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.bench.time_to_answer import resampling, settings, studies
from tests.bench.time_to_answer.judging import FALSE, OPEN, RIGHT, judged, table
from tests.bench.time_to_answer.studies import Record

SEEN = Record(
    framework="torch",
    difference=0.1,
    condition="quiet",
    method="turns",
    number=1,
    truth=0.9,
    seconds=80.0,
    answer="slower",
    ratio=0.91,
    low=0.88,
    high=0.94,
    logs={block: -0.1 + 0.004 * (block % 3) for block in range(1, 11)},
    block_s=dict.fromkeys(range(1, 11), 20.0),
)


@pytest.mark.parametrize(
    ("answer", "truth", "verdict"),
    [
        ("same", 1.0, RIGHT),
        ("slower", 1.0, FALSE),
        ("faster", 1.0, FALSE),
        ("same", 0.98, RIGHT),
        ("slower", 0.98, RIGHT),
        ("faster", 0.98, FALSE),
        ("same", 0.9, FALSE),
        ("slower", 0.9, RIGHT),
        ("cannot tell", 0.9, OPEN),
        ("contended", 1.0, OPEN),
    ],
)
def test_an_answer_is_judged_by_what_was_planted(answer: str, truth: float, verdict: str) -> None:
    assert judged(answer, truth) == verdict


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "studies.jsonl"
    studies.keep(SEEN, file)
    studies.keep(replace(SEEN, number=2, ratio=None, low=None, high=None), file)
    assert studies.recorded(file)[0] == SEEN
    assert [one.number for one in studies.recorded(file)] == [1, 2]


def test_shares_have_exact_bounds() -> None:
    (row,) = table([SEEN] * 20, by_framework=False)
    assert "| 20 | 20 of 20 [0.83, 1.00] | 0 of 20 [0.00, 0.17] | 80 |" in row


def test_kinds_of_studies_take_turns_in_an_order_that_a_later_session_repeats() -> None:
    every = settings.in_order(1, settings.FRAMEWORKS, settings.CONDITIONS)
    assert len(set(every)) == 48
    assert every == settings.in_order(1, settings.FRAMEWORKS, settings.CONDITIONS)
    some = settings.in_order(1, ["jax"], ["quiet"])
    assert some == [one for one in every if (one.framework, one.condition) == ("jax", "quiet")]


def test_drawn_studies_find_what_stands_out_of_the_recorded_noise() -> None:
    ((name, bank),) = resampling.banked([SEEN])
    assert name == "quiet | torch | 10 % | turns"
    told, seconds = resampling.drawn(bank, 200)
    assert told[RIGHT] == 200
    assert seconds == 4 * 20.0


def test_drawn_studies_of_equal_cells_are_seldom_wrong() -> None:
    chance = np.random.default_rng(3)
    logs = {block: float(one) for block, one in enumerate(chance.normal(0.02, 0.05, 60))}
    equal = replace(SEEN, truth=1.0, logs=logs, block_s=dict.fromkeys(logs, 20.0))
    ((_, bank),) = resampling.banked([equal])
    told, _ = resampling.drawn(bank, 500)
    assert told[FALSE] <= 500 * 0.05
