"""Precisions that a plan leaves out, each with its reason."""

from __future__ import annotations

import pytest

from harness.study.framework import framework_info
from harness.worker.network.precisions import PRECISIONS, precision_of

PURE = {"torch", "jax"}


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow", "keras", "tinygrad", "caffe"])
def test_fp8_is_left_out_with_one_reason_for_all(name: str) -> None:
    said = framework_info(name).refuses("precision", "fp8")
    assert said == "fp8 is left out: no GPU has shown yet that what bakeoff makes of it is right"


@pytest.mark.parametrize("name", ["tensorflow", "keras", "tinygrad", "caffe", "singa"])
def test_who_holds_no_weights_in_bf16_says_why(name: str) -> None:
    said = framework_info(name).refuses("precision", "bf16-pure") or ""
    assert "float32" in said
    assert "does not offer" not in said


@pytest.mark.parametrize("name", sorted(PURE))
def test_who_holds_weights_in_bf16_is_not_left_out(name: str) -> None:
    assert framework_info(name).refuses("precision", "bf16-pure") is None


def test_peaks_of_pure_bf16_are_those_of_bf16() -> None:
    assert PRECISIONS["bf16-pure"].products == "bf16"
    assert PRECISIONS["bf16-pure"].held_bytes == 2
    assert precision_of("bf16").held_bytes == 4
