"""Claims against facts that real frameworks recorded."""

from __future__ import annotations

from typing import Any

import pytest

from harness.verdicts.asked_vs_ran import contradictions

TORCH: dict[str, Any] = {
    "device": "cpu",
    "threads": 2,
    "interop_threads": 2,
    "layout": "channels-last",
    "compiler": None,
    "deterministic": False,
    "busy_threads": 2,
    "computed": {"float32": 1.0},
    "computed_by": "time in oneDNN's convolutions and products",
    "onednn_primitives": {"convolution brg_conv_fwd:avx512_core": 4.0, "reorder jit:uni": 8.0},
}
ASKED: dict[str, Any] = {
    "device": "cpu",
    "precision": "fp32",
    "compile": False,
    "layout": "default",
    "threads": None,
    "interop_threads": None,
    "onednn": None,
    "deterministic": False,
}


def said(factors: dict[str, Any], facts: dict[str, Any]) -> list[str]:
    return [str(one) for one in contradictions({**ASKED, **factors}, {**TORCH, **facts})]


def test_what_was_asked_for_and_ran_is_not_mentioned() -> None:
    asked = {"threads": 2, "interop_threads": 2, "layout": "channels-last", "onednn": True}
    assert said(asked, {}) == []


def test_facts_that_nobody_told_contradict_nothing() -> None:
    asked = {"precision": "bf16", "threads": 2, "compile": True, "onednn": True}
    assert contradictions({**ASKED, **asked, "deterministic": True}, {}) == ()


@pytest.mark.parametrize(("asked", "parts"), [(4, 4), (4, 8), (1, 1), (None, 3), (4, None)])
def test_a_step_in_as_many_parts_as_asked_is_not_mentioned(asked: Any, parts: Any) -> None:
    assert said({"accumulate": asked}, {"multiplications": {"parts": parts}}) == []


def test_a_batch_computed_at_once_makes_a_cell_of_micro_batches_another_one() -> None:
    told = {"counted": 8, "by": "operators that torch dispatched", "parts": 1}
    facts = {**TORCH, "multiplications": told}
    (found,) = contradictions({**ASKED, "accumulate": 4}, facts)
    assert found.is_grave
    assert str(found) == (
        "asked for 4 micro-batches, a step ran in 1 part (how often each product of a step comes, "
        "by operators that torch dispatched)"
    )


@pytest.mark.parametrize(("asked", "ran"), [("fused", "plain"), ("plain", "fused")])
def test_attention_that_was_computed_another_way_makes_a_cell_another_one(
    asked: str, ran: str
) -> None:
    assert said({"attention": asked}, {"attention": asked}) == []
    (found,) = contradictions({**ASKED, "attention": asked}, {**TORCH, "attention": ran})
    assert found.is_grave
    assert f"asked for {asked} attention" in str(found)


@pytest.mark.parametrize(
    ("factors", "facts", "words"),
    [
        (
            # TensorFlow 2.21 with XLA on a CPU that has AVX-512 bf16
            {"precision": "bf16", "compile": True},
            {
                "compiler": "xla",
                "computed": {"float32": 1.0},
                "computed_by": "convolutions and products of XLA's optimised step",
            },
            (
                "asked for bf16, ran float32 kernels, to which XLA widens it on this CPU (100 % of "
                "the convolutions and products of XLA's optimised step)"
            ),
        ),
        (
            {"threads": 2},
            {"busy_threads": 1},
            "asked for 2 threads, ran 1 (threads that computed in the probe's steps)",
        ),
        ({"threads": 1}, {}, "asked for 1 thread, ran 2 (the size of its pool)"),
        (
            {"interop_threads": 1},
            {},
            "asked for 1 interop thread, ran 2 (the size of its pool)",
        ),
        (
            {"compile": True},
            {
                "compiler": "inductor",
                "compiled_graphs": 4,
                "graph_breaks": 3,
                "graph_break_reasons": ["call to print"],
            },
            "asked for compile, 3 graph breaks (call to print)",
        ),
        (
            {"compile": True},
            {"compiler": "inductor", "compiled_graphs": 0},
            "asked for compile, nothing was compiled (the framework's count)",
        ),
        (
            {"onednn": True},
            {"onednn_primitives": {"gemm_api": 247.0}},
            (
                "asked for oneDNN, none of its primitives ran (oneDNN printed none while being "
                "watched)"
            ),
        ),
        (
            {"onednn": False},
            {},
            (
                "asked for no oneDNN, 12 of its primitives ran a step (convolution "
                "brg_conv_fwd:avx512_core)"
            ),
        ),
        (
            {"layout": "channels-first"},
            {},
            "asked for channels-first, ran channels-last (the layout of its activations)",
        ),
        (
            {"deterministic": True},
            {},
            "asked for deterministic, the switch is off (as the framework reports after the steps)",
        ),
        (
            {"device": "gpu"},
            {},
            "asked for a gpu, ran on a cpu (as the framework reports)",
        ),
        (
            {"device": "gpu"},
            {"device": "gpu", "tf32_convolutions": True, "tf32_products": False},
            "asked for fp32, convolutions may run in TF32 (the framework's setting)",
        ),
    ],
)
def test_what_did_not_run_is_said_with_its_evidence(
    factors: dict[str, Any], facts: dict[str, Any], words: str
) -> None:
    assert said(factors, facts) == [words]


def test_the_matrix_routine_that_eigen_borrows_does_not_make_onednn_run() -> None:
    assert said({"onednn": False}, {"onednn_primitives": {"gemm_api": 247.0}}) == []


def test_a_mixed_step_counts_as_what_most_of_it_was() -> None:
    assert said({"precision": "bf16"}, {"computed": {"bfloat16": 0.8, "float32": 0.2}}) == []


def test_weights_and_optimiser_are_held_in_what_the_precision_says() -> None:
    wide = {"weights_held": "float32", "optimiser_held": "bfloat16, float32"}
    told = [one.ran for one in contradictions({"precision": "bf16-pure"}, wide)]
    assert told == [
        "weights are held in float32",
        "the optimiser's state is held in bfloat16, float32",
    ]
    narrow = {"weights_held": "bfloat16", "optimiser_held": "bfloat16"}
    assert contradictions({"precision": "bf16-pure"}, narrow) == ()
    (first, _) = contradictions({"precision": "bf16"}, narrow)
    assert first.is_grave
