"""Hold the estimate of a plan's time to its arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.plan.duration import doubts, estimate
from harness.plan.plan import Plan
from harness.platform.platform import Platform

Planned = Callable[..., Plan]

TEXT = """\
title = "T"
[matrix]
workload = ["alexnet", "tinycnn"]
framework = "torch"
compile = [false, true]
compile_cache = "cold"
[measure]
trials = 3
warmup = "10 s"
until = "60 s"
timeout = "100 s"
"""


def test_the_first_guess_follows_the_protocol(planned: Planned) -> None:
    plan = planned(TEXT)
    first = estimate(plan)
    eager = next(c.key for c in plan.cells if c.workload == "tinycnn" and not c.factors["compile"])
    settling = 60 * 0.3
    assert first.trial_s[eager] == pytest.approx(75 + settling, abs=1)
    assert max(first.trial_s.values()) == 100  # compiling exceeds the timeout
    assert first.total_s == pytest.approx(3 * sum(first.trial_s.values()))
    assert first.node_hours == pytest.approx(first.total_s / 3600)
    assert not first.refined


def test_compiling_is_guessed_by_layers_and_fills_its_cache_once(planned: Planned) -> None:
    text = TEXT.replace('["alexnet", "tinycnn"]', '["resnet50", "tinycnn"]')
    text = text.replace('compile_cache = "cold"', "batch = 1").replace('"100 s"', '"1 h"')
    plan = planned(text.replace("compile = [false, true]", "compile = true"))
    eager = planned(text.replace("compile = [false, true]", "compile = false"))
    compiled, plainly = estimate(plan), estimate(eager)
    each = {
        cell.workload: compiled.trial_s[cell.key] - plainly.trial_s[other.key]
        for cell, other in zip(plan.cells, eager.cells, strict=True)
    }
    assert each["tinycnn"] == pytest.approx(1.75)
    assert each["resnet50"] == pytest.approx(9.7)
    in_trials = sum(compiled.trial_s[key] for key, _ in plan.order)
    plain = sum(plainly.trial_s[key] for key, _ in eager.order)
    once = (compiled.total_s - in_trials) - (plainly.total_s - plain)
    assert once > 5 + 0.35 * 15 + 5 + 0.35 * 174


def test_what_turns_settle_comes_on_top_of_what_they_measure(planned: Planned) -> None:
    text = TEXT.replace('["alexnet", "tinycnn"]', '"tinycnn"')
    study = text.replace("compile = [false, true]", "batch = [16, 32]")
    by_turns, alone = (
        estimate(planned(study.replace("[measure]", f"[measure]\nturns = {turns}"))).trial_s
        for turns in ("true", "false")
    )
    assert [by_turns[key] - alone[key] for key in alone] == pytest.approx([60 * 0.3] * 2)


def test_finished_trials_replace_and_scale_the_guesses(planned: Planned) -> None:
    plan = planned(TEXT.replace("compile = [false, true]\n", ""))
    seen, unseen = (cell.key for cell in plan.cells)
    guess = estimate(plan).trial_s
    later = estimate(plan, {seen: [guess[seen] / 2, 1.0, guess[seen] * 9], unseen: []})
    assert later.trial_s[seen] == guess[seen] / 2
    assert later.trial_s[unseen] == pytest.approx(guess[unseen] / 2)
    assert later.refined


def test_more_nodes_cost_more_node_hours(
    planned: Planned, machine: Callable[..., Platform]
) -> None:
    text = TEXT.replace("compile = [false, true]", "nodes = 4\nstrategy = 'ddp'")
    plan = planned(text, platform=machine(nodes=8))
    found = estimate(plan)
    assert found.node_hours == pytest.approx(4 * found.total_s / 3600)


def test_steps_are_guessed_from_the_workload(planned: Planned) -> None:
    text = TEXT.replace('until = "60 s"', 'until = "50 steps"').replace("100 s", "9 h")
    plan = planned(text)
    by_workload = {c.workload: estimate(plan).trial_s[c.key] for c in plan.cells}
    assert by_workload["alexnet"] > by_workload["tinycnn"] + 10


def test_devices_that_share_a_ranks_cpus_compute_their_batches_one_after_another(
    planned: Planned,
) -> None:
    text = TEXT.replace('until = "60 s"', 'until = "50 steps"').replace("100 s", "9 h")
    text = text.replace("compile = [false, true]", 'devices_per_rank = 4\nstrategy = "mirrored"')
    one = estimate(planned(text.replace("devices_per_rank = 4", "batch = 32")))
    four = estimate(planned(text))
    larger = estimate(planned(text.replace("devices_per_rank = 4", "batch = 128")))
    assert list(four.trial_s.values()) == pytest.approx(list(larger.trial_s.values()))
    assert max(four.trial_s.values()) > max(one.trial_s.values()) + 10


def test_accelerators_of_a_rank_compute_their_batches_at_once(
    planned: Planned, machine: Callable[..., Platform]
) -> None:
    text = TEXT.replace('until = "60 s"', 'until = "50 steps"').replace("100 s", "9 h")
    text = text.replace("compile = [false, true]", 'device = "gpu"\nstrategy = "mirrored"')
    there = machine(accelerators=[{"model": "H100", "count": 4}])
    one = estimate(planned(text, platform=there))
    four = estimate(planned(text.replace('gpu"', 'gpu"\ndevices_per_rank = 4'), platform=there))
    assert list(four.trial_s.values()) == pytest.approx(list(one.trial_s.values()))


def test_a_cell_that_will_not_end_in_time_is_named_not_clamped_in_silence(
    planned: Planned,
) -> None:
    plan = planned(TEXT)
    guess = estimate(plan)
    compiled = {cell.key for cell in plan.cells if cell.factors["compile"]}
    assert compiled <= set(guess.late)
    (said,) = doubts(plan, guess)
    assert said.startswith(
        f"{len(guess.late)} cells may not end within measure.timeout (1 min 40 s): "
    )
    late = {key: [90.0] for key in guess.late}
    assert doubts(plan, estimate(plan, late)) == ()


def test_a_plan_says_what_the_gate_takes_once_for_cells_of_one_lowering(planned: Planned) -> None:
    text = TEXT.replace("compile = [false, true]", "threads = [1, 2]")
    one, both = planned(text.replace("threads = [1, 2]", "threads = 1")), planned(text)
    assert estimate(one).gate_s == estimate(both).gate_s > 0
    compiled = planned(text.replace("threads = [1, 2]", "compile = true"))
    assert estimate(compiled).gate_s > estimate(one).gate_s
    assert estimate(one, {one.cells[0].key: [1.0]}).gate_s == 0  # it has examined them by then
