"""These tests hold results against published figures, and the figures against their source."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness import plugins
from harness.analysis.analyse import analyse
from harness.analysis.context.closest_figure import nearest
from harness.analysis.context.published_figures import Figure, own, parse, published
from harness.cli.verbs.reference import command
from harness.cli.verbs.show import command as show
from harness.errors import FaultyFile
from harness.store.dataset import Dataset
from harness.store.records import RunInfo
from harness.study.framework import framework_names
from harness.verdicts.results import CellResult, WhatRan
from tests.runs import Behaviour, RecordedCell, Recording, write_run

FACTORS = {"device": "gpu", "batch": 64, "precision": "fp32"}
RESNET = RecordedCell(
    workload="resnet50", factors=FACTORS, behaviour=Behaviour(step_s=64 / 350, windows=10)
)
GPU = {
    "name": "minna",
    "title": "Minna",
    "accelerators": [{"model": "Tesla V100-SXM2-16GB", "count": 4}],
}
AGREEING = Figure(
    machine="Minna",
    processor="V100",
    framework="torch",
    framework_version="2.13.0",
    model="resnet50",
    workload="resnet50",
    batch=64,
    precision="fp32",
    layout="channels-last",
    loader="synthetic",
    compile=False,
    recompute=False,
    value=350.0,
    unit="images/s",
    source="a test",
)


def measured(
    folder: Path, cell: RecordedCell = RESNET, machine: dict[str, object] = GPU
) -> tuple[CellResult, RunInfo]:
    run = write_run(folder, [cell], Recording(platform=machine, block_noise=0.0))
    told = analyse(Dataset([run]))
    return told.cells[0], told.runs[0]


def test_even_a_figure_that_agrees_in_everything_is_the_nearest_with_an_interval(
    tmp_path: Path,
) -> None:
    cell, run = measured(tmp_path)
    match = nearest(cell, run, [AGREEING])
    assert match is not None
    assert match.differences == ()
    assert match.share == pytest.approx(1.0, rel=0.05)
    assert match.interval is not None
    assert cell.rate is not None
    assert cell.rate.interval is not None
    assert match.interval.low == pytest.approx(cell.rate.interval.low / 350)
    assert match.interval.low < match.share < match.interval.high
    words = (
        r"\d+ % \[\d+, \d+\] of the nearest published figure, 350 images/s \(nothing .* differs\)"
    )
    assert re.fullmatch(words, str(match))


def test_a_share_without_enough_trials_says_that_it_has_no_interval(tmp_path: Path) -> None:
    run = write_run(tmp_path, [RESNET], Recording(platform=GPU, trials=1))
    told = analyse(Dataset([run]))
    assert " % (no interval) of the nearest " in str(
        nearest(told.cells[0], told.runs[0], [AGREEING])
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"workload": "resnet50-v1"}, "variant resnet50-v1"),
        ({"workload": None}, "variant not stated"),
        ({"workload": None, "variant": "resnet50_v2"}, "variant resnet50_v2"),
        ({"batch": 192}, "batch 192"),
        ({"batch": None}, "batch not stated"),
        ({"batch": None, "global_batch": 256}, "batch 256"),
        ({"loader": "DALI"}, "DALI loader"),
        ({"layout": None}, "layout not stated"),
        ({"precision": "tf32"}, "tf32 precision"),
        ({"framework": "mxnet"}, "framework mxnet"),
        ({"framework_version": "1.6"}, "version 1.6"),
        ({"machine": "DGX-1"}, "machine DGX-1"),
        ({"compile": True}, "compiled"),
        ({"recompute": True}, "blocks computed twice"),
        ({"recompute": "selective"}, "in part computed twice"),
        ({"accumulate": 4}, "4 micro-batches"),
        ({"attention": "fused"}, "fused attention"),
        ({"note": "fwd+bwd"}, "fwd+bwd"),
    ],
)
def test_whatever_differs_is_listed(tmp_path: Path, change: dict[str, object], said: str) -> None:
    match = nearest(*measured(tmp_path), [replace(AGREEING, **change)])  # type: ignore[arg-type]
    assert match is not None
    assert match.differences == (said,)
    assert f"(differs: {said})" in str(match)


HOW = {"compile": True, "recompute": True, "accumulate": 4, "attention": "plain"}
"""Of how a step is computed, what nobody does unasked."""


def test_of_a_cell_that_computes_unusually_a_figure_s_silence_is_listed(tmp_path: Path) -> None:
    silent = replace(AGREEING, compile=None, recompute=None)
    usual = nearest(*measured(tmp_path / "usual"), [silent])
    assert usual is not None
    assert usual.differences == ()
    cell = replace(RESNET, factors={**FACTORS, **HOW})
    match = nearest(*measured(tmp_path / "unusual", cell), [silent])
    assert match is not None
    assert match.differences == tuple(
        f"{name} not stated" for name in ("compile", "recompute", "attention", "accumulate")
    )


def test_what_a_figure_says_it_does_not_do_differs_from_a_cell_that_does(tmp_path: Path) -> None:
    cell = replace(RESNET, factors={**FACTORS, "compile": True, "recompute": True})
    match = nearest(*measured(tmp_path, cell), [AGREEING])
    assert match is not None
    assert match.differences == ("not compiled", "no blocks computed twice")


def test_the_way_of_attention_that_ran_counts_where_none_was_asked_for(tmp_path: Path) -> None:
    figure = replace(AGREEING, attention="fused")
    cell, run = measured(tmp_path)
    ran = WhatRan(facts={"attention": "fused"})
    match = nearest(replace(cell, ran=ran), run, [figure])
    assert match is not None
    assert match.differences == ()


@pytest.mark.parametrize(
    "change",
    [
        {"processor": "A100"},
        {"processor": None},
        {"device": "cpu"},
        {"devices": 8},
        {"model": "alexnet"},
        {"precision": "mixed"},
        {"unit": "images/s per device"},
        {"metric": "time to accuracy"},
    ],
)
def test_what_is_not_comparable_matches_nothing(tmp_path: Path, change: dict[str, object]) -> None:
    assert nearest(*measured(tmp_path), [replace(AGREEING, **change)]) is None  # type: ignore[arg-type]


def test_the_figure_that_differs_least_is_chosen(tmp_path: Path) -> None:
    figures = [
        replace(AGREEING, workload="resnet50-v1"),
        replace(AGREEING, batch=128),
        replace(AGREEING, framework="mxnet"),
    ]
    match = nearest(*measured(tmp_path), figures)
    assert match is not None
    assert match.figure.batch == 128


def test_no_published_figure_of_another_variant_goes_without_its_differences(
    tmp_path: Path,
) -> None:
    v1 = replace(RESNET, workload="resnet50-v1")
    cell, run = measured(tmp_path, v1)
    for figure in published():
        match = nearest(cell, run, [figure])
        if match is not None:
            assert match.differences
            if figure.workload == "resnet50":
                assert "variant resnet50" in match.differences


def test_a_time_per_epoch_is_better_when_shorter(tmp_path: Path) -> None:
    figure = replace(AGREEING, metric="epoch", unit="s", value=100.0)
    cell, run = measured(tmp_path)
    match = nearest(cell, run, [figure])
    assert match is not None
    assert cell.epoch_s is not None
    assert match.share == pytest.approx(100 / cell.epoch_s.value)


def test_a_derived_figure_keeps_its_mark(tmp_path: Path) -> None:
    match = nearest(*measured(tmp_path), [replace(AGREEING, kind="derived", batch=1)])
    assert "350 images/s †" in str(match)


def find(**wanted: object) -> list[float]:
    return [
        figure.value
        for figure in published()
        if all(getattr(figure, name) == value for name, value in wanted.items())
    ]


def test_published_figures_are_those_of_their_sources() -> None:
    figures = published()
    assert len(figures) == 140
    assert all(figure.source for figure in figures)
    p100 = {"machine": "DGX-1 P100", "loader": "synthetic"}
    assert find(**p100, model="resnet50") == [219, 422, 852, 1734]
    assert find(**p100, model="alexnet") == [2987, 5658, 10509, 17822]
    assert find(machine="DGX-1 V100", framework="mxnet", precision="mixed") == [1376, 10723]
    assert find(machine="RTX 3090", model="resnet50", layout="channels-last") == [1218]
    assert find(machine="Cori KNL, 1 node", model="resnet50") == [9.56]
    assert find(machine="Cori KNL 7250", model="cosmoflow") == [1059, 1941]
    assert find(model="neuron-inverter") == [37.0, 0.63, 22.2, 1.39, 14.6, 0.6]


READ_ONLY = {"gemm", "all-reduce", "inception-v3", "resnet101", "vgg16"}
"""Kernels, and networks of which scaling alone was published: no rate is held against them."""
OTHERS = {"llm.c", "mxnet", "oneflow", "paddle", "torch7"}
"""Frameworks that have no adapter: their figures are the nearest where ours have none."""
BY_DEVICE = {"arXiv 1711.00705", "stanford-futuredata/dawn-bench-entries @fb27b827"}
"""Sources that count so, of machines of more than a hundred nodes."""


@pytest.mark.parametrize("figure", published(), ids=lambda one: f"{one.machine} {one.value}")
def test_a_figure_names_a_network_a_framework_and_a_convention_that_exist(figure: Figure) -> None:
    if any(figure.model.startswith(one) for one in READ_ONLY):
        return
    assert figure.model in plugins.workload_names()
    assert figure.workload in (None, *plugins.workload_names())
    assert figure.framework in (None, *framework_names(), *OTHERS)
    if figure.metric != "rate":
        return
    is_text = plugins.workload(figure.model).unit == "tokens"
    assert (figure.sequence is not None) == is_text
    units = {"tokens/s", "samples/s"} if is_text else {"images/s", "samples/s"}
    assert figure.unit in units or figure.source in BY_DEVICE


def test_no_figure_stands_twice() -> None:
    kinds = [
        replace(one, source="", framework_version=None, value=round(one.value))
        for one in published()
    ]
    assert [one for one in kinds if kinds.count(one) > 1] == []


@pytest.mark.parametrize(
    ("workload", "unit", "gpu", "factors", "values"),
    [
        (
            *("gpt2-124m", "tokens", "NVIDIA A100-SXM4-80GB"),
            *({"batch": 4, "sequence": 1024, "precision": "bf16"}, {8: 1747624}),
        ),
        (
            *("llama-3-1-8b", "tokens", "NVIDIA H100 80GB HBM3"),
            *({"batch": 2, "sequence": 8192, "precision": "bf16"}, {8: 46096}),
        ),
        (
            *("llama-3-1-8b", "tokens", "NVIDIA H100 80GB HBM3"),
            *({"batch": 2, "sequence": 8192, "precision": "bf16", "compile": True}, {8: 53336}),
        ),
        (
            *("vit-b16", "images", "NVIDIA GeForce RTX 3090"),
            *({"batch": 192, "precision": "fp16"}, {1: 390.86}),
        ),
        (
            *("bert-base", "tokens", "Tesla V100-SXM2-16GB"),
            *({"batch": 32, "sequence": 128, "precision": "fp32"}, {1: 119.6, 32: 2885.81}),
        ),
    ],
)
def test_figures_of_today_s_networks_have_cells(
    tmp_path: Path,
    workload: str,
    unit: str,
    gpu: str,
    factors: dict[str, object],
    values: dict[int, float],
) -> None:
    machine = {**GPU, "accelerators": [{"model": gpu, "count": 8}]}
    for count, value in values.items():
        ranks = {"ranks_per_node": min(count, 8), "nodes": -(-count // 8), "strategy": "ddp"}
        cell = RecordedCell(
            workload=workload,
            unit=unit,
            factors={"device": "gpu", **(ranks if count > 1 else {}), **factors},
            behaviour=Behaviour(step_s=0.1, windows=10),
        )
        match = nearest(*measured(tmp_path / str(count), cell, machine), published())
        assert match is not None
        assert match.figure.value == value
        assert not {"compiled", "not compiled"} & set(match.differences)


def test_no_fp32_cell_is_held_to_llm_c_s_figure_in_bf16(tmp_path: Path) -> None:
    ranks = {"ranks_per_node": 8, "nodes": 1, "strategy": "ddp"}
    factors = {**FACTORS, **ranks, "batch": 64, "sequence": 1024}
    cell = replace(RESNET, workload="gpt2-124m", unit="tokens", factors=factors)
    machine = {**GPU, "accelerators": [{"model": "NVIDIA A100-SXM4-80GB", "count": 8}]}
    assert nearest(*measured(tmp_path, cell, machine), published()) is None


def test_bert_s_figures_are_of_a_variant_that_is_named(tmp_path: Path) -> None:
    cell, run = measured(tmp_path, bert(128))
    match = nearest(cell, run, published())
    assert match is not None
    assert match.figure.value == 119.60
    assert "variant with dropout" in match.differences
    assert match.share == pytest.approx(350 / 128 / 119.60, rel=0.01)


def test_figures_of_another_length_of_texts_are_of_other_work(tmp_path: Path) -> None:
    assert nearest(*measured(tmp_path, bert(512)), published()) is None


def bert(sequence: int) -> RecordedCell:
    factors = {**FACTORS, "sequence": sequence}
    return replace(RESNET, workload="bert-base", unit="tokens", factors=factors)


def test_sources_that_disagree_are_both_kept() -> None:
    one_v100 = find(model="resnet50", processor="V100", devices=1, precision="fp32")
    assert {367, 412, 384, 362, 369} <= set(one_v100)


def test_only_what_its_source_calls_v1_5_is_our_resnet50() -> None:
    sure = {figure.source.split()[0] for figure in published() if figure.workload == "resnet50"}
    assert sure == {"NVIDIA/DeepLearningExamples", "NVIDIA's", "Oneflow-Inc/DLPerf"}


def test_faults_of_a_file_are_told_together() -> None:
    text = (
        'version = 1\n[[figure]]\nmachine = "M"\nmodel = "resnet50"\n'
        "speed = 1\nvalue = [1, 2]\ndevices = [1]\n"
    )
    with pytest.raises(FaultyFile) as told:
        parse(text, "mine.toml")
    for said in ("speed: unknown key", "unit: is missing", "source: is missing", "equally long"):
        assert said in str(told.value)


def test_own_runs_are_kept_in_the_same_format(tmp_path: Path) -> None:
    run = write_run(tmp_path, [RESNET], Recording(platform=GPU))
    folder = tmp_path / "references"
    arguments = ["add", str(run), "--to", str(folder)]
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    assert "1 figure" in result.output
    told = analyse(Dataset([run]))
    match = nearest(told.cells[0], told.runs[0], own(folder))
    assert match is not None
    assert match.differences == ()
    assert match.share == pytest.approx(1, rel=1e-4)
    again = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert "already" in str(again.exception)


def test_an_own_figure_keeps_how_its_step_was_computed(tmp_path: Path) -> None:
    cells = [RESNET, replace(RESNET, factors={**FACTORS, **HOW})]
    run = write_run(tmp_path, cells, Recording(platform=GPU))
    folder = tmp_path / "references"
    result = CliRunner().invoke(command, ["add", str(run), "--to", str(folder)])
    assert result.exit_code == 0, result.output
    stored = [{name: getattr(figure, name) for name in HOW} for figure in own(folder)]
    plain = {"compile": False, "recompute": False, "accumulate": 1, "attention": None}
    assert HOW in stored
    assert plain in stored
    told = analyse(Dataset([run]))
    for cell in told.cells:
        match = nearest(cell, told.runs[0], own(folder))
        assert match is not None
        assert match.differences == ()


def test_a_listed_figure_says_of_what_work_it_is() -> None:
    plain, compiled = CliRunner().invoke(command, ["list", "torchtitan"]).output.splitlines()
    for line, value in ((plain, "46096 tokens/s"), (compiled, "53336 tokens/s")):
        for said in ("sequence 8192", "in part computed twice", value, "FSDP"):
            assert f" {said}" in line
    assert " not compiled " in plain
    assert " | compiled " in compiled
    found = CliRunner().invoke(command, ["list", "torchtitan", "| compiled"]).output
    assert found.splitlines() == [compiled]
    whole = CliRunner().invoke(command, ["list", "llm.c"]).output
    assert " | no micro-batches | 1747624 tokens/s † | " in whole
    silent = CliRunner().invoke(command, ["list", "image-models", "vit-b16"]).output
    assert "compile –" in silent
    assert "sequence" not in silent


def test_figures_are_listed_by_words() -> None:
    output = CliRunner().invoke(command, ["list", "cosmoflow", "fugaku"]).output
    assert output.count("\n") == 1
    assert "2060 samples/s †" in output


def test_a_run_is_shown_beside_the_nearest_figures_as_information(tmp_path: Path) -> None:
    run = write_run(tmp_path, [RESNET], Recording(platform=GPU))
    shown = " ".join(CliRunner().invoke(show, [str(run)]).output.split())
    told = re.search(
        r"Is that normal\? .* torch: (\d+ % \[.*\]) of the nearest published figure, (.*)\)", shown
    )
    assert told is not None, shown
    assert "differs:" in told[2]
    assert "verdict" not in told[2]


GOOD = """version = 1
[[figure]]
machine = "m"
model = "resnet50"
value = 3
unit = "images/s"
source = "s"
"""


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("figure = 3", "figure"),
        ("figure = [1]", "figure"),
        (GOOD.replace("value = 3", 'value = "x"'), "value"),
        (GOOD.replace("value = 3", "value = []"), "value"),
        (GOOD.replace("value = 3", 'value = [1, "x"]'), "value"),
        (GOOD.replace("value = 3", "value = nan"), "value"),
        (GOOD.replace("value = 3", "value = true"), "value"),
        (GOOD.replace("value = 3", "value = { a = 1 }"), "value"),
        (GOOD.replace("value = 3", f"value = {'9' * 5000}"), ""),
        (GOOD.replace('machine = "m"', "machine = 3"), "machine"),
        (GOOD + "kind = []", "kind"),
        (GOOD + "kind = {}", "kind"),
        (GOOD + "devices = -1", "devices"),
        (GOOD + "batch = 1.5", "batch"),
        (GOOD + "note = 1979-05-27", "note"),
        (GOOD + "compile = 1", "compile: is one of true, false"),
        (GOOD + 'recompute = "partly"', "recompute: is one of true, false, 'selective'"),
        (GOOD + 'attention = "flash"', "attention: is one of 'fused', 'plain'"),
        (GOOD + "accumulate = 0", "accumulate"),
        (GOOD + "note = " + "[" * 5000, ""),
        ("\x00", ""),
    ],
)
def test_figures_of_a_wrong_type_are_faults_of_their_file(
    tmp_path: Path, text: str, what: str
) -> None:
    (tmp_path / "own.toml").write_text(text if "version" in text else f"version = 1\n{text}")
    with pytest.raises(FaultyFile) as told:
        own(tmp_path)
    assert what in str(told.value)
    assert "own.toml" in str(told.value)


def test_figures_that_are_no_text_are_a_fault_of_their_file(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_bytes(b"version = 1 # \xff")
    with pytest.raises(FaultyFile, match=r"own\.toml"):
        own(tmp_path)
