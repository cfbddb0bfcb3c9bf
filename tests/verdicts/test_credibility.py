"""Hold what each trial shows itself: losses that move, a rate that its processors can reach."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.read import read_results
from harness.sections.trials import trials
from harness.store.layout import RunPaths, TrialName
from harness.verdicts.credibility.amount import amount_in_words
from harness.verdicts.credibility.gpu_peaks import gpu_peak
from harness.verdicts.ended_trial import doubt
from harness.verdicts.results import CellResult
from tests.outcomes import seal_all
from tests.runs import Behaviour, RecordedCell, write_run

MACHINE = {"hostname": "node0", "cores": 2, "capabilities": ["avx2", "avx512f"]}
TORCH = RecordedCell(behaviour=Behaviour(trial_noise=0.002, window_noise=0.004))
NAN, INFINITE = float("nan"), float("inf")
FALLS = [2.3 - 0.01 * step for step in range(12)]

Recorded = Callable[..., CellResult]


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Record a run of one cell, let its trials say losses, and judge it."""

    def judged(
        cell: RecordedCell = TORCH,
        losses: Sequence[float] = (),
        *,
        machine: object = None,
        facts: object = None,
        idle: slice = slice(0),
    ) -> CellResult:
        paths = RunPaths(write_run(tmp_path, [cell]))
        kept = json.loads(paths.provenance.read_text())
        paths.provenance.write_text(json.dumps({**kept, "machine": machine}))
        for block in range(1, 7):
            events = paths.trial(cell.key, TrialName(block)).events(0)
            said = [
                {"event": "values", "step": step, "values": {"loss": loss}}
                for step, loss in enumerate(losses)
            ]
            more = [] if facts is None else [{"event": "facts", "facts": facts}]
            lines = [line for line in events.read_text().splitlines() if "values" not in line]
            for at in [at for at, line in enumerate(lines) if '"measure"' in line][1:][idle]:
                window = json.loads(lines[at])
                lines[at] = json.dumps({**window, "end": window["start"] + 100})
            lines += [json.dumps(one, separators=(",", ":")) for one in (*said, *more)]
            events.write_text("\n".join(lines) + "\n")
        seal_all(paths.root)
        (found,) = read_results([paths.root]).cells
        return found

    return judged


def evidence(cell: CellResult) -> str:
    assert {trial.verdict for trial in cell.trials} <= {"untrained", "impossible"}
    assert not any(trial.counted for trial in cell.trials)
    return cell.trials[0].evidence[0]


def test_losses_that_move_say_nothing(recorded: Recorded) -> None:
    cell = recorded(losses=FALLS)
    assert all(trial.counted for trial in cell.trials)


@pytest.mark.parametrize("losses", [[], [2.3088], [2.3088, 2.3088]])
def test_few_losses_say_nothing(recorded: Recorded, losses: list[float]) -> None:
    assert recorded(losses=losses).rate is not None


def test_a_loss_that_stands_still_rejects_the_trial(recorded: Recorded) -> None:
    told = evidence(recorded(losses=[2.3088183403015137] * 30))
    assert told == (
        "the loss is 2.30882 after each of the first 30 steps: what was timed does not train"
    )


def test_a_constant_that_is_added_up_in_another_order_stands_still_too(recorded: Recorded) -> None:
    rounded = 2.3088183403015137 + 2.4e-7
    assert "after each of the first" in evidence(recorded(losses=[2.3088183403015137, rounded] * 9))


@pytest.mark.parametrize(("wrong", "words"), [(NAN, "not a number"), (INFINITE, "infinite")])
def test_a_loss_that_is_no_number_rejects_the_trial(
    recorded: Recorded, wrong: float, words: str
) -> None:
    assert f"the loss is {words} after step 4" in evidence(recorded(losses=[*FALLS[:3], wrong]))


def test_a_loss_that_diverges_after_the_first_steps_is_no_fault_of_the_timing(
    recorded: Recorded,
) -> None:
    losses = [2.3 - 0.01 * step for step in range(50)]
    assert recorded(losses=[*losses, NAN]).rate is not None


def test_a_loss_that_stands_still_amid_a_trial_and_moves_again_is_said(recorded: Recorded) -> None:
    paused = [2.3 - 0.001 * max(min(step, 100), step - 700) for step in range(1000)]
    cell = recorded(losses=paused)
    for trial in cell.trials:
        assert trial.counted
        (told,) = (one for one in trial.evidence if "loss" in one)
        assert told.endswith(
            "and 2.001 at the end: what was timed may have done nothing for a while"
        )
        assert told.startswith("the loss is 2.2 from step ")


@pytest.mark.parametrize("after", [2.2, 2.2 - 1e-6], ids=["for good", "nearly for good"])
def test_a_loss_that_comes_to_rest_says_nothing(recorded: Recorded, after: float) -> None:
    learnt = [max(2.3 - 0.001 * step, 2.2 if step < 900 else after) for step in range(1000)]
    cell = recorded(losses=learnt)
    assert not any("loss" in one for trial in cell.trials for one in trial.evidence)


def test_a_trial_that_did_not_train_is_not_run_again_since_the_same_would_come(
    recorded: Recorded, tmp_path: Path
) -> None:
    cell = recorded(losses=[2.5] * 30)
    (root,) = tmp_path.iterdir()
    trial = RunPaths(root).trial(cell.key, TrialName(1))
    assert {one.verdict for one in cell.trials} == {"untrained"}
    assert doubt(trial) is None


def test_a_loss_with_no_more_digits_than_bf16_may_honestly_stand_still(recorded: Recorded) -> None:
    narrow = replace(TORCH, factors={"precision": "bf16"})
    assert recorded(narrow, [2.3125] * 30).rate is not None


def test_a_wide_loss_of_a_narrow_network_may_not_stand_still(recorded: Recorded) -> None:
    narrow = replace(TORCH, factors={"precision": "bf16"})
    assert "2.30882" in evidence(recorded(narrow, [2.3088183403015137] * 30))


def test_a_loss_scale_may_skip_the_first_steps_of_fp16(recorded: Recorded) -> None:
    half = replace(TORCH, factors={"precision": "fp16"})
    assert recorded(half, [2.3088183403015137] * 20).rate is not None


def test_a_rate_beyond_all_cores_is_impossible(recorded: Recorded) -> None:
    cell = replace(TORCH, behaviour=replace(TORCH.behaviour, step_s=1e-7))
    told = evidence(recorded(cell, FALLS, machine=MACHINE))
    assert "images/s cannot be: each takes 54 MFLOP, together" in told
    assert "2 cores × 64 operations a cycle (avx512f) × 6.2 GHz do at most 793.6 GFLOP/s" in told


def test_the_floor_that_computes_nothing_may_be_as_fast_as_it_is(recorded: Recorded) -> None:
    cell = replace(TORCH, framework="null", behaviour=replace(TORCH.behaviour, step_s=1e-7))
    assert recorded(cell, machine=MACHINE).rate is not None


def test_a_window_beyond_all_cores_is_impossible_in_an_ordinary_trial(recorded: Recorded) -> None:
    told = evidence(recorded(TORCH, FALLS, machine=MACHINE, idle=slice(20, 23)))
    assert "images/s in its fastest window cannot be: each takes 54 MFLOP, together" in told


def test_a_rate_within_reach_of_fast_convolutions_is_believed(recorded: Recorded) -> None:
    cell = replace(TORCH, behaviour=replace(TORCH.behaviour, step_s=16 * 54e6 / 3e12))
    assert recorded(cell, FALLS, machine=MACHINE).rate is not None


def test_nothing_is_said_of_a_machine_that_is_not_the_one_recorded(recorded: Recorded) -> None:
    cell = replace(TORCH, behaviour=replace(TORCH.behaviour, step_s=1e-7))
    assert recorded(cell, FALLS, machine={**MACHINE, "hostname": "login1"}).rate is not None


def test_a_rate_beyond_a_gpu_is_impossible(recorded: Recorded) -> None:
    cell = replace(
        TORCH,
        factors={"device": "gpu", "precision": "bf16"},
        behaviour=replace(TORCH.behaviour, step_s=1e-7),
    )
    told = evidence(recorded(cell, FALLS, facts={"device_name": "NVIDIA H100 80GB HBM3"}))
    words = "1 × NVIDIA H100 80GB HBM3 at 990 TFLOP/s in bf16 (NVIDIA H100 GPU Architecture) do"
    assert f"{words} at most 990 TFLOP/s" in told


@pytest.mark.parametrize(
    ("name", "precision", "peak"),
    [
        ("NVIDIA L40", "bf16", 181),
        ("NVIDIA L40S", "bf16", 362),
        ("NVIDIA L4", "fp32", 30.3),
        ("Tesla V100-SXM2-16GB", "fp16", 125),
        ("NVIDIA A10", "fp32", 31.24),
        ("NVIDIA A10", "tf32", 62.48),
        ("NVIDIA A10", "bf16", 124.95),
    ],
)
def test_a_gpu_s_peak_is_stated_or_follows_from_its_cores(
    name: str, precision: str, peak: float
) -> None:
    described = {"cores": 9216, "highest_clock_hz": 1.695e9, "compute_capability": [8, 6]}
    machine = {"gpus": [{"name": "NVIDIA A10", **described}]}
    found = gpu_peak(name, machine)
    assert found is not None
    assert found.of(precision) == pytest.approx(peak, rel=1e-3)


@pytest.mark.parametrize(
    ("factors", "facts", "machine", "words"),
    [
        ({"device": "gpu"}, {"device_name": "Some GPU"}, MACHINE, "peak unknown (Some GPU): "),
        ({"device": "gpu"}, {}, MACHINE, "peak unknown (the GPU): the rate is held to nothing"),
        ({}, {}, None, "peak unknown (the processors): the rate is held to nothing"),
        ({}, {}, MACHINE, "; 2 cores × 64 operations a cycle (avx512f) × 6.2 GHz do at most 793.6"),
    ],
)
def test_every_trial_says_what_its_rate_implies_and_is_held_to(
    recorded: Recorded, tmp_path: Path, factors, facts, machine, words
) -> None:
    recorded(replace(TORCH, factors=factors), FALLS, machine=machine, facts=facts)
    table = trials(read_results(list(tmp_path.iterdir())))
    at = next(at for at, column in enumerate(table.columns) if column.key == "implied")
    assert all("FLOP/s; " in row[at] and words in row[at] for row in table.rows)


def test_the_peak_of_a_gpu_that_nothing_is_known_of_is_unknown() -> None:
    assert gpu_peak("Some GPU", {"gpus": [{"name": "Some GPU", "cores": None}]}) is None
    assert gpu_peak("Some GPU", None) is None


@pytest.mark.parametrize("losses", [[2.3025851, 2.3025851], [2.3025851, 2.3025852]])
def test_the_same_loss_twice_where_masks_differ_rejects_the_trial(
    recorded: Recorded, losses: list[float]
) -> None:
    told = evidence(recorded(losses=FALLS, facts={"restarts": losses}))
    assert "have the loss 2.302585: dropout is off where it is timed" in told


@pytest.mark.parametrize("losses", [[2.3025851, 2.3031], [2.5, 2.5], []])
def test_another_loss_with_other_masks_is_believed(recorded: Recorded, losses: list[float]) -> None:
    assert recorded(losses=FALLS, facts={"restarts": losses}).rate is not None


@pytest.mark.parametrize("counted", [1.029, 1.0, 0.971])
def test_a_step_that_multiplies_as_training_does_is_believed(
    recorded: Recorded, counted: float
) -> None:
    facts = {"multiplications": {"counted": int(counted * 10**9), "asked": 10**9}}
    assert recorded(losses=FALLS, facts=facts).rate is not None


@pytest.mark.parametrize(
    ("counted", "words"),
    [
        (5 * 10**8, "1 GFLOP in convolutions and products, 50 % less"),
        (0, "0 FLOP in convolutions and products, 100 % less"),
        (104 * 10**7, "4 % more than the 2 GFLOP"),
    ],
)
def test_a_step_that_multiplies_another_amount_rejects_the_trial(
    recorded: Recorded, counted: int, words: str
) -> None:
    facts = {"multiplications": {"counted": counted, "asked": 10**9}}
    assert words in evidence(recorded(losses=FALLS, facts=facts))


def test_blocks_that_were_not_computed_twice_though_asked_reject_the_trial(
    recorded: Recorded,
) -> None:
    facts = {"multiplications": {"counted": 8 * 10**8, "asked": 10**9, "again": 2 * 10**8}}
    words = "20 % less than the 2 GFLOP that training on its batch takes with its blocks computed"
    assert words in evidence(recorded(losses=FALLS, facts=facts))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"counted": 999, "asked": 1000, "by": "its text"}, "99.9 % of training's, by its text"),
        (
            {"counted": 500, "again": 250, "by": "its text"},
            "50.0 % of training's with its blocks computed twice, by its text",
        ),
        ({"uncounted": "nobody told"}, "not counted: nobody told"),
        ({}, ""),
    ],
)
def test_a_trial_says_what_was_counted_and_by_what(
    recorded: Recorded, told: dict[str, int | str], words: str
) -> None:
    trial = recorded(losses=FALLS, facts={"multiplications": {"asked": 1000, **told}}).trials[0]
    assert amount_in_words(trial.facts["multiplications"]) == words


def test_a_trial_that_started_from_other_weights_is_marked_and_counts(recorded: Recorded) -> None:
    start = {"weights": "0123", "batch": None, "differs": "conv1/weight"}
    cell = recorded(losses=FALLS, facts={"start": start})
    assert cell.rate is not None
    assert (
        "it did not start from the weights and the batch that it was given: conv1/weight is another"
        in cell.trials[0].evidence
    )


def test_trials_that_start_from_another_batch_than_others_are_named(tmp_path: Path) -> None:
    jax = replace(TORCH, framework="jax")
    paths = RunPaths(write_run(tmp_path, [TORCH, jax]))
    for cell in (TORCH, jax):
        for block in range(1, 7):
            batch = "other" if (cell, block) == (jax, 2) else "usual"
            facts = {"start": {"weights": "same", "batch": batch, "differs": None}}
            with paths.trial(cell.key, TrialName(block)).events(0).open("a") as file:
                file.write(json.dumps({"event": "facts", "facts": facts}) + "\n")
    seal_all(paths.root)
    told = [one for one in read_results([paths.root]).warnings if "started from" in one]
    assert told == ["tinycnn at batch 16: trial 2 of jax started from another batch than others."]
