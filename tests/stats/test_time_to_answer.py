"""These tests hold how answers of planted differences are judged, kept and drawn again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.bench.time_to_answer import resampling, settings, studies
from tests.bench.time_to_answer.judging import FALSE, OPEN, RIGHT, judged, table
from tests.bench.time_to_answer.studies import Record
from tests.runs import Behaviour, RecordedCell, Recording, write_run

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
    equal = replace(SEEN, difference=0.0, truth=1.0)
    ((name, bank),) = resampling.banked([equal, SEEN])
    assert name == "quiet | torch | turns"
    told = resampling.drawn(bank, 0.9, 200)
    assert told.judged[RIGHT] == 200
    assert set(told.seconds) == {4 * 20.0}


def test_drawn_studies_of_equal_cells_are_seldom_wrong() -> None:
    told = resampling.drawn(_noise(0.02, 0.05, 60), 1.0, 500)
    assert told.judged[FALSE] <= 500 * 0.05


def test_studies_are_cut_from_a_run_one_after_the_other() -> None:
    told = resampling.cut(_noise(0.0, 0.004, 22), 1 / 1.1)
    assert told.judged == {RIGHT: 5}, "4 blocks each, and 2 are left"
    assert told.answered_s == 4 * 20.0


def test_a_study_that_a_runs_end_cuts_off_is_none() -> None:
    told = resampling.cut(_noise(0.0, 0.5, 22), 1 / 1.02)
    assert told.judged == {OPEN: 1}
    assert told.seconds == (12 * 20.0,)


def test_finished_runs_of_a_study_are_a_bank_without_their_difference(tmp_path: Path) -> None:
    slow = Behaviour(step_s=0.03, trial_noise=0.01, window_noise=0.004)
    cells = [RecordedCell(), RecordedCell(framework="jax", behaviour=slow)]
    runs = [write_run(tmp_path / name, cells, Recording(name=name)) for name in ("a", "b")]
    ((name, bank),) = resampling.banked_of_runs(runs, "shared")
    assert name == "shared | tinycnn · jax | turns"
    assert [len(logs) for logs in bank.logs] == [6, 6]
    assert np.concatenate(bank.logs).mean() == pytest.approx(0, abs=1e-12)
    assert np.concatenate(bank.logs).std() < 0.1
    assert all((seconds > 0).all() for seconds in bank.seconds)


def _noise(mean: float, deviation: float, blocks: int) -> resampling.Bank:
    chance = np.random.default_rng(3)
    logs = {block: float(one) for block, one in enumerate(chance.normal(mean, deviation, blocks))}
    seconds = dict.fromkeys(logs, 20.0)
    equal = replace(SEEN, difference=0.0, truth=1.0, logs=logs, block_s=seconds)
    ((_, bank),) = resampling.banked([equal])
    return bank
