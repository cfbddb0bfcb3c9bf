"""The terminal says the answer first, then the ranking as text bars."""

from __future__ import annotations

import dataclasses

import pytest

from harness.store.records import Gate
from reports.text.terminal import render, text_bar
from tests.reports import samples


def test_the_answer_stands_before_the_ranking():
    text = render(samples.demo())
    assert text.index("Answer: ") < text.index("images/s")


def test_a_line_has_name_bar_rate_interval_ratio_and_answer():
    line = next(x for x in render(samples.demo()).splitlines() if "jax fp32 " in x and "█" in x)
    assert line.split()[0:2] == ["jax", "fp32"]
    assert line.endswith("25.0  [24.8, 25.3]  0.800  slower")


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("make", [samples.demo, samples.failures])
def test_lines_stay_within_the_terminal(width, make):
    assert max(map(len, render(make(), width).splitlines())) <= width


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_no_name_machine_or_mark_is_cut_off(width):
    results = samples.two_runs()
    unchecked = tuple(
        dataclasses.replace(cell, gate=Gate("not checked", "")) for cell in results.cells
    )
    machine = "A machine whose title says at length what it is, and where"
    named = tuple(
        dataclasses.replace(run, platform={**run.platform, "title": f"{machine}, {i}"})
        for i, run in enumerate(results.runs)
    )
    text = render(dataclasses.replace(results, cells=unchecked, runs=named), width)
    told = " ".join(text.split())
    for ranking in dataclasses.replace(results, runs=named).rankings:
        for cell in ranking.cells:
            assert f"{ranking.name(cell)} ? · {ranking.machine(cell)}" in told
    assert max(map(len, text.splitlines())) <= width
    assert "█" in text


def test_names_cannot_steer_the_terminal():
    assert "\x1b" not in render(samples.hostile())


def test_bars_are_proportional_to_an_eighth_of_a_character():
    assert text_bar(1.0, 10) == "█" * 10
    assert text_bar(0.5, 9) == "████▌"
    assert text_bar(0.0, 10) == ""
