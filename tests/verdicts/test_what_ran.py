"""Read a recorded probe and a cold trial, and show them beside what was asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.sections.what_ran import what_ran as laid_out
from harness.store.layout import RunPaths, TrialPaths
from harness.verdicts.results import WhatRan
from harness.verdicts.what_ran import what_ran
from reports.page.page import render
from tests import outcomes
from tests.reports import samples

ASKED = {"precision": "bf16", "compile": True, "device": "cpu"}
FACTS = {
    "compiler": "xla",
    "computed": {"float32": 1.0},
    "computed_by": "convolutions and products of XLA's optimised step",
}


def record(trial: TrialPaths, *events: dict[str, Any], outcome: str = "ok") -> None:
    outcomes.record(trial, outcome, reason="why")
    trial.events(0).write_text("".join(json.dumps(event) + "\n" for event in events))


def test_the_cold_trial_gives_the_first_step_and_what_compiling_took(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    window = {"event": "window", "phase": "warm-up", "first": 0, "steps": 1}
    facts = {"event": "facts", "facts": {"compile_s": 2.5}}
    record(
        paths.cold("k"),
        {"event": "phase", "name": "open", "t": 100_000_000},
        {"event": "phase", "name": "build", "t": 500_000_000},
        {**window, "start": 1_000_000_000, "end": 5_000_000_000},
        {**window, "start": 5_000_000_000, "end": 5_100_000_000},
        facts,
    )
    found = what_ran(paths, "k", ASKED, ())
    assert (found.first_step_cold_s, found.compile_s, found.probe) == (4.5, 2.5, "not probed")


def test_the_probe_s_facts_are_held_against_the_factors(tmp_path: Path) -> None:
    record(RunPaths(tmp_path).probe("k"), {"event": "facts", "facts": FACTS})
    found = what_ran(RunPaths(tmp_path), "k", ASKED, ())
    assert found.probe == "watched"
    said = "ran float32 kernels, to which XLA widens it on this CPU"
    assert [one.ran for one in found.contradictions] == [said]


def test_a_failed_probe_says_how_it_ended_and_contradicts_nothing(tmp_path: Path) -> None:
    record(RunPaths(tmp_path).probe("k"), outcome="timed-out")
    found = what_ran(RunPaths(tmp_path), "k", ASKED, ())
    assert (found.probe, found.contradictions) == ("timed-out: why", ())


def test_the_page_shows_what_ran_only_where_something_was_watched(tmp_path: Path) -> None:
    plain = samples.demo()
    assert 'id="what-ran"' not in render(plain)
    assert laid_out(plain).rows == ()
    record(RunPaths(tmp_path).probe("k"), {"event": "facts", "facts": FACTS})
    ran: WhatRan = what_ran(RunPaths(tmp_path), "k", ASKED, ())
    cell = replace(plain.cells[0], ran=ran)
    shown = replace(plain, cells=(cell, *plain.cells[1:]))
    page = render(shown)
    assert 'id="what-ran"' in page
    assert "asked for bf16, ran float32 kernels" in page
