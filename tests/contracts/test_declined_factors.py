"""Ways to train with less memory, which a plan leaves out with a reason of the adapter's own."""

from __future__ import annotations

import pytest

from harness.study.framework import framework_info, framework_names

TRAINING = [
    name
    for name in framework_names()
    if "train" in framework_info(name).kinds and framework_info(name).computes
]


@pytest.mark.parametrize("name", TRAINING)
@pytest.mark.parametrize(("factor", "value"), [("accumulate", 2), ("recompute", True)])
def test_who_does_not_carry_it_out_says_why(factor: str, value: object, name: str) -> None:
    said = framework_info(name).refuses(factor, value)
    assert said is None or "does not offer" not in said
    assert framework_info(name).refuses(factor, framework_info(name).default(factor)) is None


@pytest.mark.parametrize(
    ("device", "precision", "why"),
    [
        ("gpu", "bf16", None),
        ("gpu", "fp32", "cuDNN's attention takes bf16 and fp16 alone"),
        ("cpu", "bf16", "JAX's own attention is two products on a CPU"),
    ],
)
def test_jax_s_fused_attention_is_not_taken_by_itself_and_needs_cudnn(
    device: str, precision: str, why: str | None
) -> None:
    jax = framework_info("jax")
    assert jax.factors["attention"] == ("plain", "fused")
    known = {"attention": "fused", "device": device, "precision": precision}
    fails = [one.fails(known) for one in jax.requires if one.concerns(known)]
    said = [one for one in fails if one is not None]
    assert [one.startswith(str(why)) for one in said] == ([] if why is None else [True])
