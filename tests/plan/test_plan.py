"""Plan studies: what is spelt out, what is left out and why, and what is compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.plan.holes import Hole, grouped
from harness.plan.plan import Plan, from_json, to_json
from harness.platform.platform import Platform
from harness.study.matrix import Exclusion, Matrix, Selection, points

Planned = Callable[..., Plan]
Machine = Callable[..., Platform]

HEAD = """\
title = "T"
[matrix]
workload = ["alexnet", "tinycnn"]
framework = ["torch", "jax"]
"""

AXES = st.dictionaries(
    st.sampled_from(["batch", "nodes", "threads", "prefetch"]),
    st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True).map(tuple),
)
ROWS = st.lists(
    st.tuples(st.sampled_from(["none", "ddp"]), st.sampled_from(["fp32", "bf16"])), max_size=4
)


@given(AXES, ROWS, st.lists(st.integers(1, 9), max_size=3))
def test_a_matrix_crosses_its_axes_with_zips_and_adds_its_includes(
    axes: dict[str, tuple[int, ...]], rows: list[tuple[str, str]], singles: list[int]
) -> None:
    axes = {"workload": ("w",), "framework": ("torch",), **axes}  # type: ignore[dict-item]
    zips = ()
    if rows:
        strategies, precisions = zip(*rows, strict=True)
        zips = ({"strategy": strategies, "precision": precisions},)
    includes = tuple({"workload": "w", "framework": "jax", "batch": one} for one in singles)
    found = list(points(Matrix(axes, zips, includes)))
    product = max(1, len(rows))
    for values in axes.values():
        product *= len(values)
    assert [point for point, included in found if included] == list(includes)
    crossed = [point for point, included in found if not included]
    assert len(crossed) == product
    for point in crossed:
        assert all(point[name] in values for name, values in axes.items())
        assert not rows or (point["strategy"], point["precision"]) in rows


@given(st.sets(st.integers(1, 40), min_size=1), st.sets(st.integers(1, 40)))
def test_an_exclusion_takes_exactly_what_it_names(asked: set[int], unwanted: set[int]) -> None:
    exclusion = Exclusion(Selection({"batch": tuple(unwanted)}), "why")
    taken = {batch for batch in asked if exclusion.selection.takes({"batch": batch})}
    assert taken == asked & unwanted


def test_true_and_one_are_different_values() -> None:
    assert not Selection({"compile": (True,)}).takes({"compile": 1})


def test_a_framework_selects_all_its_environments() -> None:
    selection = Selection({"framework": ("torch",)})
    assert selection.takes({"framework": "torch@1.13"})
    assert not Selection({"framework": ("torch@1.13",)}).takes({"framework": "torch"})


def test_excluded_cells_keep_their_reason_and_included_ones_come_back(planned: Planned) -> None:
    plan = planned(
        HEAD
        + """precision = ["fp32", "bf16"]
[[exclude]]
framework = "jax"
precision = "bf16"
why = "not asked here"
[[include]]
workload = "tinycnn"
framework = "jax"
precision = "bf16"
"""
    )
    assert [hole.why for hole in plan.holes] == ["not asked here"]
    assert plan.holes[0].label == "alexnet · jax · bf16"
    assert "tinycnn · jax · bf16" in [cell.label for cell in plan.cells]
    assert len(plan.cells) == 7


def test_an_exclusion_without_effect_is_noted(planned: Planned) -> None:
    plan = planned(HEAD + "[[exclude]]\nprecision = 'bf16'\nwhy = 'x'\n")
    assert plan.notes == ("exclude[0] leaves out nothing: no cell of this plan matches it.",)


def test_equal_cells_are_planned_once(planned: Planned) -> None:
    text = HEAD + "[[include]]\nworkload = 'alexnet'\nframework = 'torch'\nbatch = 32\n"
    assert len(planned(text).cells) == 4


def test_defaults_of_a_workload_come_before_those_of_a_framework(planned: Planned) -> None:
    plan = planned(
        HEAD
        + """[defaults.workload.alexnet]
batch = 8
[defaults.framework.jax]
batch = 4
precision = "bf16"
"""
    )
    found = {(c.workload, c.framework): c.factors["batch"] for c in plan.cells}
    assert found == {
        ("alexnet", "torch"): 8,
        ("alexnet", "jax"): 8,
        ("tinycnn", "torch"): 32,
        ("tinycnn", "jax"): 4,
    }
    assert {c.framework: c.factors["precision"] for c in plan.cells} == {
        "torch": "fp32",
        "jax": "bf16",
    }


def test_options_cross_only_with_their_own_framework(planned: Planned) -> None:
    plan = planned(HEAD + "torch.mode = ['plain', 'hard']\ntorch.fused = false\n")
    assert [cell.label for cell in plan.cells if cell.workload == "alexnet"] == [
        "alexnet · torch · torch.mode plain",
        "alexnet · torch · torch.mode hard",
        "alexnet · jax",
    ]
    assert plan.cells[0].options == {"fused": False, "mode": "plain"}


def test_a_frameworks_own_default_stands_for_the_vocabularys(planned: Planned) -> None:
    implied = planned(HEAD).cells[0]
    stated = planned(HEAD + "layout = 'channels-last'\n").cells[0]
    assert implied.factors["layout"] == "channels-last"
    assert implied.key == stated.key


def test_a_global_batch_is_shared_among_the_devices(planned: Planned, machine: Machine) -> None:
    text = HEAD + "global_batch = 64\nstrategy = 'ddp'\nnodes = [1, 2, 3]\n"
    plan = planned(text, platform=machine(nodes=4))
    assert {c.factors["nodes"]: c.factors["batch"] for c in plan.cells} == {1: 64, 2: 32}
    assert {hole.why for hole in plan.holes} == {
        "a global batch of 64 does not divide among 3 devices"
    }


@pytest.mark.parametrize(
    ("added", "why"),
    [
        ("precision = ['fp32', 'fp16']", "torch does not offer precision fp16 (it has: fp32, "),
        ("compile = [false, true]", "jax does not offer compile true (it has: false)"),
        (
            "strategy = ['none', 'ddp']\nnodes = 2",
            "2 ranks need a strategy, and this cell has none",
        ),
        ("device = ['cpu', 'gpu']", "needs a GPU in each node; box has none"),
        (
            "devices_per_rank = [1, 2]",
            "a rank of torch drives 2 devices with mirrored only, not none",
        ),
        ("container = [false, true]", "box names no container for torch"),
        ("input = ['synthetic', 'files']", "torch does not offer input files (it has: synthetic)"),
        ("[[include]]\nworkload = 'nothing'\nframework = 'torch'", "torch does not run workloads"),
        (
            "[[include]]\nworkload = 'alexnet'\nframework = 'torch@1.0'",
            "there is no environment called 'torch@1.0'. ",
        ),
    ],
)
def test_what_cannot_run_is_a_hole_with_its_reason(
    added: str, why: str, planned: Planned, machine: Machine
) -> None:
    plan = planned(HEAD + added, platform=machine(nodes=8))
    assert any(hole.why.startswith(why) for hole in plan.holes), {hole.why for hole in plan.holes}


def test_a_platform_that_is_silent_rules_nothing_out(planned: Planned) -> None:
    unknown = Platform.model_validate({"name": "cloud", "title": "Who knows"})
    plan = planned(HEAD + "device = 'gpu'\nnodes = 64\nstrategy = 'ddp'\n", platform=unknown)
    assert plan.holes == ()


def test_a_frameworks_requirement_speaks_of_the_platform(
    planned: Planned, machine: Machine
) -> None:
    small = machine(accelerators=[{"model": "small", "count": 2, "memory": "4 GiB"}])
    plan = planned(HEAD + "device = 'gpu'\n", platform=small)
    assert {hole.why for hole in plan.holes} == {"needs 8 GiB on the GPU"}
    assert {cell.framework for cell in plan.cells} == {"jax"}


def test_more_memory_than_the_platform_has_leaves_nothing(refusal: Callable[..., str]) -> None:
    assert refusal(HEAD + "[measure]\nmemory = '16 GiB'\n") == (
        "mine.toml: nothing is left to run. Every cell fell:\n"
        "    measure.memory asks for 16 GiB a node; box has 8 GiB: "
        "alexnet · torch, alexnet · jax, tinycnn · torch, tinycnn · jax"
    )


@pytest.mark.parametrize(
    ("added", "where", "why"),
    [
        ("batch = 32\naccumulate = 3\n", "accumulate", "torch does not offer accumulate 3"),
        ("nodes = 2\nglobal_batch = 33\n", "global_batch", "a global batch of 33"),
    ],
)
def test_where_every_cell_fell_the_line_of_what_they_fell_for_is_named(
    refusal: Callable[..., str], added: str, where: str, why: str
) -> None:
    text = HEAD.replace('["alexnet", "tinycnn"]', '"alexnet"') + added
    line = text.splitlines().index(next(x for x in text.splitlines() if x.startswith(where))) + 1
    said = refusal(text, only=("framework=torch",))
    assert f"    mine.toml:{line}: matrix.{where}: {why}" in said


def test_narrowing_to_nothing_says_so(refusal: Callable[..., str]) -> None:
    said = refusal(HEAD, only=("framework=torhc", "batch=32"))
    first, framework, batch = said.splitlines()
    assert first == (
        "mine.toml: no cell of this study matches --only framework=torhc and --only batch=32."
    )
    assert framework == "    Its framework: jax, torch. Did you mean 'torch'?"
    assert batch.startswith("    Its batch: ")


def test_narrowing_one_factor_twice_says_how_to_keep_both(refusal: Callable[..., str]) -> None:
    said = refusal(HEAD, only=("framework=torch", "framework=jax"))
    assert "Its framework: jax, torch. --only framework=torch,jax keeps any of these." in said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("precision=float16", "Its precision: fp32. Did you mean 'fp16'? --set matrix.precision=…"),
        ("device=gpu", "Its device: cpu. --set matrix.device=… asks for others."),
    ],
)
def test_narrowing_to_what_a_study_has_not_says_how_to_have_it(
    asked: str, said: str, refusal: Callable[..., str]
) -> None:
    assert said in refusal(HEAD + 'device = "cpu"\nprecision = "fp32"\n', only=(asked,))


def test_narrowing_keeps_what_is_named_and_makes_no_holes(planned: Planned) -> None:
    text = HEAD + (
        "precision = ['fp32', 'bf16']\n"
        "[measure]\nreference = { framework = 'jax', precision = 'fp32' }\n"
    )
    plan = planned(text, only=("framework=torch", "precision=bf16"))
    assert [cell.label for cell in plan.cells] == ["alexnet · torch", "tinycnn · torch"]
    assert plan.holes == ()
    assert plan.reference == {}
    assert plan.notes == (
        "alexnet has no reference: its reference cell was not asked for (--only).",
        "tinycnn has no reference: its reference cell was not asked for (--only).",
    )


def test_a_reference_that_cannot_run_is_noted(planned: Planned) -> None:
    text = (
        HEAD + "device = ['cpu', 'gpu']\n[measure]\nreference = {framework='jax', device='gpu'}\n"
    )
    assert planned(text).notes[0] == "alexnet has no reference: its reference cell was left out."


def test_the_reference_is_one_cell_of_each_workload(planned: Planned) -> None:
    plan = planned(HEAD + "[measure]\nreference = { framework = 'jax' }\n")
    assert {workload: plan.cell(key).framework for workload, key in plan.reference.items()} == {
        "alexnet": "jax",
        "tinycnn": "jax",
    }


def test_a_reference_is_the_very_environment_that_it_names(planned: Planned) -> None:
    text = HEAD.replace('["torch", "jax"]', '["keras", "keras@torch"]')
    plan = planned(text + "[measure]\nreference = { framework = 'keras' }\n")
    assert {plan.cell(key).framework for key in plan.reference.values()} == {"keras"}
    alone = planned(text.replace('"keras", ', "") + "[measure]\nreference={framework='keras'}\n")
    assert {alone.cell(key).framework for key in alone.reference.values()} == {"keras@torch"}


def test_sizes_and_the_command_line_replace_parts(planned: Planned) -> None:
    text = HEAD + (
        "batch = [1, 2]\n[measure]\ntrials = 9\nseed = 5\nreference = {framework='jax', batch=1}\n"
        "[size.smoke.matrix]\nbatch = 4\n[size.smoke.measure]\nreference = {framework='torch'}\n"
    )
    plan = planned(text, size="smoke", overrides=("measure.trials=2", "measure.until=3 s"))
    assert {cell.factors["batch"] for cell in plan.cells} == {4}
    assert (plan.measure.trials, plan.measure.seed, plan.measure.until.seconds) == (2, 5, 3.0)
    assert len(plan.reference) == 2
    assert plan.study.size == "smoke"


def test_horovod_picks_its_environment_by_itself(planned: Planned, machine: Machine) -> None:
    there = machine(frameworks={"torch@horovod": {"interpreter": "/opt/h/python"}})
    text = HEAD + "strategy = ['none', 'horovod']\n"
    cells = planned(text, platform=there).cells
    assert {(c.framework, c.environment) for c in cells if c.adapter == "torch"} == {
        ("torch", "torch"),
        ("torch", "torch@horovod"),
    }


def test_a_plan_survives_its_file(planned: Planned, machine: Machine) -> None:
    gpus = machine(accelerators=[{"model": "A100", "count": 4, "memory": "40 GB"}], start_up="2 s")
    text = HEAD + "device=['cpu','gpu']\ncompile=[false,true]\n[measure]\nmemory='1 GiB'\n"
    plan = planned(text, platform=gpus)
    assert from_json(json.loads(json.dumps(to_json(plan)))) == plan


def test_a_plan_older_than_a_factor_ran_at_its_default(planned: Planned) -> None:
    plan = planned(HEAD)
    raw = json.loads(json.dumps(to_json(plan)))
    for cell in raw["cells"]:
        assert cell["factors"].pop("allocator") is None
    assert from_json(raw) == plan


def test_holes_are_grouped_by_reason_the_commonest_first() -> None:
    holes = [Hole("a", {}, "rare"), Hole("b", {}, "common"), Hole("c", {}, "common")]
    assert list(grouped(holes).items()) == [("common", ("b", "c")), ("rare", ("a",))]


TWO = """title = "t"
[matrix]
workload = "tinycnn"
framework = ["torch", "jax"]
[measure]
"""


def test_without_a_reference_one_pilot_block_is_added(planned: Planned) -> None:
    plan = planned(TWO)
    assert Counter(block for _, block in plan.order) == dict.fromkeys(range(7), 2)


def test_no_pilot_is_run_for_what_could_not_be_told_anyway(planned: Planned) -> None:
    alone = TWO.replace('["torch", "jax"]', '"torch"')
    declared = TWO + 'reference = { framework = "torch" }'
    for text in (TWO + "trials = 5", alone, declared):
        assert all(block > 0 for _, block in planned(text).order)


def test_a_repetition_declares_its_looks_before_it_starts(planned: Planned) -> None:
    plan = planned(TWO + 'until_interval = "2 %"\ntrials_at_most = 20\nbudget = "1 h"')
    assert plan.measure.looks == (8, 12, 18, 20)
    assert max(block for _, block in plan.order) == 20
    assert to_json(plan)["looks"] == [8, 12, 18, 20]
    assert from_json(json.loads(json.dumps(to_json(plan)))) == plan


def test_limits_of_no_repetition_are_refused(refusal: Callable[..., str]) -> None:
    said = refusal(TWO + 'trials_at_most = 3\nbudget = "1 h"')
    assert "mine.toml:6: measure.trials_at_most: says nothing without until_interval" in said
    assert "measure.budget" not in said
    assert "measure.trials_at_most: is fewer than trials, 6" in said


def test_answers_may_end_with_fewer_trials_than_intervals_take(planned: Planned) -> None:
    plan = planned(TWO + 'stop = "answered"\ntrials_at_most = 5')
    assert plan.measure.looks == (4, 5)


def test_threads_that_outnumber_the_cpus_are_noted(planned: Planned, machine: Machine) -> None:
    plan = planned(HEAD + "threads = [2, 64]\n", platform=machine(binding={"oversubscribe": True}))
    assert plan.notes == (
        "4 cells oversubscribe the 2 CPUs of a node, by up to 64 threads; trials are marked.",
    )
    assert planned(HEAD + "threads = 2\n").notes == ()
