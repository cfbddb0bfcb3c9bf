"""Hold the report to what was measured of checkpoints."""

from __future__ import annotations

from dataclasses import replace

from harness.analysis.files import checkpoints
from harness.analysis.results import Results
from reports.page.page import render
from reports.text.terminal import render as in_terminal
from tests.reports import samples


def results() -> Results:
    made = samples.demo()
    first = made.cells[0]
    factors = {**first.factors, "checkpoint_to": "hdd", "checkpoint_through": "nvme"}
    trials = tuple(replace(trial, checkpoints=samples.SAVED) for trial in first.trials)
    return replace(made, cells=(replace(first, factors=factors, trials=trials), *made.cells[1:]))


def test_a_ladder_leads_from_standing_still_to_durable() -> None:
    (ladder,) = checkpoints.ladders(results())
    assert [rung.name for rung in ladder.rungs] == [
        "training goes on",
        "whole on nvme",
        "durable on hdd",
    ]
    assert [rung.rate.value for rung in ladder.rungs] == [1200.0, 1200.0, 75.0]


def test_the_page_has_a_table_of_checkpoints_where_any_were_taken() -> None:
    told = results()
    page = render(told)
    assert 'data-name="checkpoints"' in page
    assert "durable on hdd" in page
    assert 'data-name="checkpoints"' not in render(samples.demo())


def test_the_terminal_says_what_they_cost() -> None:
    said = " ".join(in_terminal(results()).split())
    assert "training stood still for 500 ms, whole on nvme after 500 ms" in said
    assert "durable on hdd after 8.00 s, restored (cold) in 6.00 s" in said
    assert "steps took 1.25 × as long meanwhile" in said
