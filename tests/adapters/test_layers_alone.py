"""Layers of a network run alone in real frameworks, in the one timed loop."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from harness.store.layout import TrialPaths
from harness.store.record_readers.ceilings import LAYER, reached_in
from harness.worker.network.alone import multiplying
from tests.adapters.interpreter import forked, told, work
from tests.forked_workers import Workers
from workloads.tinycnn import WORKLOAD

pytestmark = pytest.mark.framework


@pytest.mark.parametrize(
    ("framework", "layer", "precision"),
    [
        ("torch", "conv1/forward+backward", "fp32"),
        ("torch", "block/relu1/forward+backward", "fp32"),
        ("torch", "block/conv2/forward+backward", "bf16"),
        ("jax", "conv1/forward+backward", "fp32"),
        ("jax", "bn1/forward", "fp32"),
        ("tensorflow", "conv1/forward+backward", "fp32"),
        ("tensorflow", "fc/forward+backward", "bf16"),
        ("tensorflow@1.15", "block/conv2/forward+backward", "fp32"),
        ("keras", "conv1/forward+backward", "fp32"),
        ("keras@jax", "conv1/forward+backward", "fp32"),
        ("keras@torch", "conv1/forward+backward", "fp32"),
        ("tinygrad", "conv1/forward+backward", "fp32"),
        ("tinygrad", "bn1/forward", "fp32"),
    ],
)
def test_a_layer_is_timed_alone(
    framework: str, layer: str, precision: str, workers: Workers, tmp_path: Path
) -> None:
    is_alone = "@" in framework or framework == "tinygrad"  # one of several; imported in no time
    run = work if is_alone else partial(forked, workers)
    events = run(
        framework,
        tmp_path,
        workload=f"tinycnn/{layer}",
        factors={
            "batch": 4,
            "device": "cpu",
            "precision": precision,
            "threads": 1,
            "compile": framework == "keras@jax",  # which does nothing else
        },
    )
    assert told(events, "finished")
    assert told(events, "units")["units"] == {"images": 4}
    assert sum(one["steps"] for one in events if one["event"] == "window") >= 40


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_the_job_of_ceilings_times_the_layers_that_multiply(
    framework: str, workers: Workers, tmp_path: Path
) -> None:
    factors = {"batch": 4, "device": "cpu", "precision": "fp32", "threads": 1}
    events = forked(workers, framework, tmp_path, purpose="ceilings", factors=factors)
    assert told(events, "finished")
    heads = [one for one in events if one["event"] == "ceiling"]
    assert [one["kernel"] for one in heads[:3]] == ["gemm", "convolution", "triad"]
    assert [one["why"] for one in heads] == [""] * len(heads)
    alone = [one["kernel"] for one in heads[3:]]  # as many as its time was enough for
    every = [one.words for one in multiplying(WORKLOAD.network, 4, factors)]
    assert alone == every[: len(alone)] != []
    reached = {one.kernel for one in reached_in(TrialPaths(tmp_path)) if one.unit == LAYER}
    assert reached == set(alone)


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_job_of_ceilings_leaves_out_what_is_known(
    framework: str, workers: Workers, tmp_path: Path
) -> None:
    factors = {"batch": 4, "device": "cpu", "precision": "fp32", "threads": 1}
    *others, last = (one.words for one in multiplying(WORKLOAD.network, 4, factors))
    known = ["gemm", "convolution", "triad", *others]
    events = forked(workers, framework, tmp_path, purpose="ceilings", factors=factors, known=known)
    assert [one["kernel"] for one in events if one["event"] == "ceiling"] == [last]
    assert {one.kernel for one in reached_in(TrialPaths(tmp_path))} == {last}
