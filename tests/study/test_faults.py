"""Read studies with mistakes in them, and holds every message to its words and place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.study.checks import selection_from_text
from harness.study.study import load_study

Refusal = Callable[..., str]

GOOD = """\
title = "Good"
[matrix]
workload = ["alexnet", "tinycnn"]
framework = ["torch", "jax"]
"""


def test_three_mistakes_give_three_messages_with_lines_and_nearest_names(refusal: Refusal) -> None:
    text = """\
title = "Mine"
[matrix]
workload  = ["alexnet", "resnet50"]
framework = ["torch", "pytroch"]

[measure]
trails = 6
until = "60"
"""
    assert refusal(text) == (
        "mine.toml:4: matrix.framework[1]: no framework is called 'pytroch'. "
        "Did you mean 'torch'?\n"
        "    Known: caffe, jax, keras, null, singa, tensorflow, torch.\n"
        "mine.toml:7: measure.trails: unknown key. Did you mean 'trials'?\n"
        "mine.toml:8: measure.until: '60' needs a unit, "
        'for example "60 s" or "500 steps".\n'
        "3 faults, nothing was run."
    )


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (
            "precison = 'fp32'",
            "mine.toml:5: matrix.precison: unknown key. Did you mean 'precision'?",
        ),
        (
            "batch = [16, '32']",
            "mine.toml:5: matrix.batch[1]: '32' must be an integer from 1 up.",
        ),
        (
            "precision = [\n  'fp32',  # the usual\n  'bf61',\n]",
            (
                "mine.toml:7: matrix.precision[1]: 'bf61' is no value of precision. "
                "Did you mean 'bf16'?\n    Known: fp32, tf32, bf16, bf16-pure, fp16, fp8."
            ),
        ),
        (
            "batch = [16, 16]",
            "mine.toml:5: matrix.batch[1]: 16 is listed twice.",
        ),
        (
            "batch = 16\nglobal_batch = 64",
            "mine.toml:6: matrix.global_batch: give batch or global_batch, not both.",
        ),
        (
            "torch.fusd = true",
            "mine.toml:5: matrix.torch.fusd: torch has no option 'fusd'. Did you mean 'fused'?",
        ),
        (
            "[[zip]]\nnodes = [1, 2]\nstrategy = ['none', 'ddp', 'ddp']",
            "mine.toml:5: zip[0]: its lists must be equally long: nodes has 2, strategy has 3.",
        ),
        (
            "[[exclude]]\nframework = 'jax'",
            (
                "mine.toml:5: exclude[0]: needs a 'why': the reason stands beside the hole "
                "in every report."
            ),
        ),
        (
            "[[include]]\nworkload = 'alexnet'",
            "mine.toml:5: include[0]: needs a framework.",
        ),
        (
            "[measure]\ntimeout = 15",
            'mine.toml:6: measure.timeout: 15 needs a unit, for example "15 min".',
        ),
        (
            "[measure]\ntrials = '6'",
            "mine.toml:6: measure.trials: '6' must be an integer.",
        ),
        (
            "[size.smoke.matrix]\nworkload = 'alexnt'",
            (
                "mine.toml:6: size.smoke.matrix.workload: no workload is called 'alexnt'. "
                "Did you mean 'alexnet'?"
            ),
        ),
        (
            "[defaults.workload.tinycn]\nbatch = 4",
            (
                "mine.toml:5: defaults.workload.tinycn: no workload is called 'tinycn'. "
                "Did you mean 'tinycnn'?"
            ),
        ),
        (
            "[measure.reference]\nframework = 'torch'\nbatch = [1, 2]",
            "mine.toml:7: measure.reference.batch: must be one value here, not a list.",
        ),
        (
            "[[zip]]\nframework = ['torch']",
            "mine.toml:6: zip[0].framework: is in [matrix] already.",
        ),
    ],
)
def test_a_mistake_is_named_where_it_stands(added: str, message: str, refusal: Refusal) -> None:
    said = refusal(GOOD + added)
    assert said.startswith(message), said
    assert said.endswith("\n1 fault, nothing was run.")


def test_twelve_mistakes_give_twelve_messages_in_the_order_of_the_file(refusal: Refusal) -> None:
    text = """\
titel = "Wrong"
[matrix]
workload = ["alexnt"]
framework = ["torch", "tensorflw@1.15"]
batch = 0
layout = "channels_last"
compile = "yes"
torch.colour = 1
[[exclude]]
why = ""
[measure]
warmup = 20
until_interval = "2"
memory = "16 GIB"
"""
    said = refusal(text)
    assert said.endswith("13 faults, nothing was run.")
    for part in (
        "mine.toml: title: is missing.",
        "mine.toml:1: titel: unknown key. Did you mean 'title'?",
        "mine.toml:3: matrix.workload[0]: no workload is called 'alexnt'. Did you mean 'alexnet'?",
        (
            "mine.toml:4: matrix.framework[1]: no framework is called 'tensorflw@1.15'. "
            "Did you mean 'tensorflow'?"
        ),
        "mine.toml:5: matrix.batch: 0 must be an integer from 1 up.",
        (
            "mine.toml:6: matrix.layout: 'channels_last' is no value of layout. "
            "Did you mean 'channels-last'?"
        ),
        "mine.toml:7: matrix.compile: 'yes' must be true or false.",
        "mine.toml:8: matrix.torch.colour: torch has no option 'colour'.\n    Known: fused, mode.",
        "mine.toml:9: exclude[0]: names no factor, so it would leave out everything.",
        "mine.toml:10: exclude[0].why: must be the reason, in a sentence.",
        'mine.toml:12: measure.warmup: 20 needs a unit, for example "60 s" or "500 steps".',
        "mine.toml:13: measure.until_interval: '2' needs a percent sign, for example \"2 %\".",
        "mine.toml:14: measure.memory: '16 GIB' needs a unit of size",
    ):
        assert part in said
    lines = [int(one.split(":")[1]) for one in said.split("\n") if one.startswith("mine.toml:1")]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('title = "x"\n[matrix\n', "mine.toml:2: not valid TOML: "),
        ("title = \n", "mine.toml:1: not valid TOML: invalid value (column 9)."),
        ("a = 1\nb = [1, 2\n", "mine.toml:2: not valid TOML: "),
        ("a = 1\na = 2\n", "mine.toml:2: not valid TOML: cannot overwrite a value (column 6)."),
    ],
)
def test_broken_toml_is_one_message_with_its_line(
    text: str, message: str, refusal: Refusal
) -> None:
    said = refusal(text)
    assert said.startswith(message)
    assert said.endswith("1 fault, nothing was run.")


def test_a_fault_from_the_command_line_points_there(refusal: Refusal) -> None:
    said = refusal(GOOD, overrides=("measure.trails=3",))
    assert said.startswith("--set measure.trails=3: measure.trails: unknown key. "), said


def test_a_factor_outside_of_the_matrix_is_told_its_place_and_the_nearest_value(
    refusal: Refusal,
) -> None:
    said = refusal(GOOD, overrides=("precision=float16",))
    assert said == (
        "--set precision=float16: precision: unknown key here. It belongs in [matrix]: "
        "matrix.precision.\n"
        "--set precision=float16: precision: 'float16' is no value of precision. "
        "Did you mean 'fp16'?\n"
        "    Known: fp32, tf32, bf16, bf16-pure, fp16, fp8.\n"
        "2 faults, nothing was run."
    )


def test_a_fault_of_a_size_points_into_the_size(refusal: Refusal) -> None:
    text = GOOD + "batch = 16\n[size.node.matrix]\nglobal_batch = 64\n"
    said = refusal(text, size="node")
    assert "mine.toml:7: size.node.matrix.global_batch: give batch or global_batch" in said


def test_a_misspelt_size_names_the_nearest(refusal: Refusal) -> None:
    text = GOOD + "[size.smoke]\n[size.paper]\n"
    assert refusal(text, size="smok") == (
        "mine.toml has no size 'smok'. Did you mean 'smoke'?\n    Known: smoke, paper."
    )


def test_a_misspelt_study_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no study is called 'quikstart'.*'quickstart'"):
        load_study("quikstart")


def test_narrowing_by_an_unknown_factor_is_refused(refusal: Refusal) -> None:
    said = refusal(GOOD, only=("framwork=torch",))
    assert said == (
        "--only framwork=torch: no factor is called 'framwork'. Did you mean 'framework'?"
    )


def test_a_reference_must_select_one_cell_per_workload(refusal: Refusal) -> None:
    text = GOOD + "batch = [16, 32]\n[measure]\nreference = { framework = 'torch' }\n"
    said = refusal(text)
    assert (
        "mine.toml:7: measure.reference: selects 2 cells of alexnet, and must select one: "
        "say also batch (16, 32)."
    ) in said
    assert said.endswith("2 faults, nothing was run.")


def test_a_reference_that_selects_nothing_is_refused(refusal: Refusal) -> None:
    text = GOOD + "[measure]\nreference = { framework = 'keras' }\n"
    assert "measure.reference: selects no cell of alexnet; it must select one." in refusal(text)


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (
            'until = "1 h"\ntimeout = "1 min"',
            (
                "mine.toml:7: measure.timeout: ends every trial after 1 min, before its warm-up "
                "and measuring are over, 1 h; raise timeout or shorten until."
            ),
        ),
        (
            'until = "1 h"',
            (
                "mine.toml:6: measure.until: the default timeout ends every trial after 15 min, "
                "before its warm-up and measuring are over, 1 h; raise timeout or shorten until."
            ),
        ),
        (
            'timeout = "0 s"',
            "mine.toml:6: measure.timeout: must be more than 0 s and at most 336 h.",
        ),
        (
            'timeout = "999999999 h"',
            "mine.toml:6: measure.timeout: must be more than 0 s and at most 336 h.",
        ),
        ('until = "0 s"', "mine.toml:6: measure.until: must be more than nothing."),
        ('until = "0 steps"', "mine.toml:6: measure.until: must be more than nothing."),
        (
            f'until = "{10**20} steps"',
            f"mine.toml:6: measure.until: '{10**20} steps' is more steps than any trial can do.",
        ),
        (
            'memory = "1 B"',
            (
                "mine.toml:6: measure.memory: must be at least 32 MiB: a worker that does nothing "
                "needs half of that."
            ),
        ),
        (
            f'memory = "{"9" * 400} GiB"',
            "mine.toml:6: measure.memory: a number of so many digits means nothing here.",
        ),
        (f"trials = {10**20}", "mine.toml:6: measure.trials: must be at most 10000."),
        (f"seed = {10**20}", "mine.toml:6: measure.seed: must be at most 2147483647."),
    ],
)
def test_a_protocol_that_can_only_fail_is_refused_at_its_line(
    refusal: Refusal, measure: str, message: str
) -> None:
    assert refusal(f"{GOOD}[measure]\n{measure}\n") == f"{message}\n1 fault, nothing was run."


@pytest.mark.parametrize("name", ["batch", "threads", "nodes", "reader_threads"])
def test_absurd_counts_are_refused(refusal: Refusal, name: str) -> None:
    said = refusal(f"{GOOD}{name} = {10**20}\n")
    assert f"mine.toml:5: matrix.{name}: {10**20} is more than 2147483647." in said


def test_a_byte_order_mark_is_no_statement(write: Callable[..., Path]) -> None:
    path = write("")
    path.write_text(GOOD, encoding="utf-8-sig")
    assert load_study(path).title == "Good"


def test_braces_in_a_value_are_shown_as_they_stand(refusal: Refusal) -> None:
    text = GOOD + '[measure]\ntrials = "${TRIALS}"\n'
    assert refusal(text).startswith("mine.toml:6: measure.trials: '${TRIALS}' must be an integer.")


@pytest.mark.parametrize("value", ["9" * 8_000, "[" * 2_000 + "]" * 2_000], ids=["long", "deep"])
def test_a_value_that_python_refuses_to_read_is_a_fault_of_the_file(
    refusal: Refusal, value: str
) -> None:
    assert refusal(GOOD + f"batch = {value}\n").startswith("mine.toml: ")


def test_digits_of_other_scripts_are_text_on_the_command_line() -> None:
    assert selection_from_text("compile=²").wanted == {"compile": ("²",)}
