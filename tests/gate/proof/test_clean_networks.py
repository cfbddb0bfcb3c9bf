"""Networks in which nothing is planted are proved, from whatever seed they start.

``make mutations`` runs all seeds, and writes a table of the errors found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from harness.gate.proof import request
from harness.gate.tensors import folders
from harness.store.contained import Contained
from harness.worker.gate.tensors import Folder
from tests import needs
from tests.gate.proof import dropping, inverting
from tests.gate.proof.conftest import SEEDS, bar
from tests.gate.proof.free_checks import seen
from workloads import tinybert, tinycnn, tinygpt, tinyllama, tinyvit

pytestmark = pytest.mark.framework

PICTURES = {"tinycnn": tinycnn, "dropping": dropping, "inverting": inverting}
TEXTS = {"tinygpt": tinygpt, "tinyllama": tinyllama, "tinybert": tinybert}
NETWORKS = {**PICTURES, **TEXTS}
TWINS = {"tinyvit": tinyvit}
PURE = ("tinycnn", "tinyvit", "dropping", *TEXTS)
DROPPING = ("dropping", "inverting")
WAYS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "torch": ("torch", {}, tuple(NETWORKS)),
    "jax": ("jax", {}, tuple(NETWORKS)),
    "tensorflow": ("tensorflow", {}, tuple(NETWORKS)),
    "keras": ("keras", {}, tuple(NETWORKS)),
    "torch, compiled": ("torch", {"compiled": True}, ("tinycnn", "dropping", "tinygpt")),
    "tensorflow, XLA": ("tensorflow", {"compiled": True}, ("tinycnn", "dropping")),
    "keras, XLA": ("keras", {"compiled": True}, ("tinycnn", "dropping")),
    "torch, bf16": ("torch", {"precision": "bf16"}, ("tinycnn", *TEXTS)),
    "jax, bf16": ("jax", {"precision": "bf16"}, ("tinycnn", *TEXTS)),
    "torch, bf16-pure": ("torch", {"precision": "bf16-pure"}, PURE),
    "jax, bf16-pure": ("jax", {"precision": "bf16-pure"}, PURE),
    "tensorflow, bf16": ("tensorflow", {"precision": "bf16"}, ("tinycnn", "tinygpt")),
    "keras, bf16": ("keras", {"precision": "bf16"}, ("tinycnn", "tinygpt")),
    "tinygrad": ("tinygrad", {}, ("tinycnn", "dropping", *TEXTS)),
}
"""How a network is trained: the framework, what a trial is asked, and the networks shown."""
ACCUMULATING = ("torch", "jax", "tensorflow")
IN_CI = {
    *((way, network, 1) for way in ("torch", "jax") for network in PICTURES),
    *((way, "tinycnn", 2) for way in ("torch", "jax")),
    *(("torch", network, 1) for network in TEXTS),
    ("jax", "tinygpt", 1),
    ("tensorflow", "tinygpt", 1),
    ("tensorflow", "dropping", 1),
    ("keras", "tinycnn", 1),
    ("torch, bf16", "tinycnn", 1),
    ("jax, bf16", "tinycnn", 1),
    ("torch, bf16-pure", "tinycnn", 8),
    ("torch, bf16-pure", "dropping", 1),
    ("jax, bf16-pure", "tinyvit", 1),
}
"""The others are left to the long form: each takes a worker of its own."""


def every_seed() -> Iterator[Any]:
    """Name each way of training with its networks and seeds."""
    for way, (_, _, networks) in WAYS.items():
        for network in networks:
            for seed in SEEDS:
                marks = [] if (way, network, seed) in IN_CI else [pytest.mark.long]
                name = f"{way}: {network}, {seed}"
                yield pytest.param(way, network, seed, id=name, marks=marks)


@pytest.mark.seeded
@pytest.mark.parametrize(("way", "network", "seed"), list(every_seed()))
def test_what_trains_is_proved(way, network, seed, prove, places, clean) -> None:
    name, asked, _ = WAYS[way]
    precision = asked.get("precision", "fp32")
    if precision == "bf16" and name in ("tensorflow", "keras"):
        needs.capability("avx512f", f"without it {name}'s bf16 kernels differ by the gate too")
    clean(way, network, seed, precision)
    found = prove(name, {**NETWORKS, **TWINS}[network], seed=seed, **asked)
    clean(way, network, seed, precision, found.error)
    assert found.updates == 3
    assert found.is_exact == (precision == "fp32")
    assert found.error < bar(precision)
    assert seen(places[-1], precision) == []


@pytest.mark.parametrize("name", ACCUMULATING)
def test_a_step_of_micro_batches_is_proved_as_one_batch(name, prove, places) -> None:
    found = prove(name, dropping, accumulate=4)
    assert found.updates == 3
    assert found.is_exact
    assert found.error < bar("fp32")
    assert seen(places[-1], "fp32") == []


def test_a_step_that_computes_blocks_twice_is_proved_as_any(prove, places) -> None:
    found = prove("torch", tinycnn, recompute=True)
    assert found.updates == 3
    assert found.is_exact
    assert found.error < bar("fp32")
    assert seen(places[-1], "fp32") == []


def test_another_seed_draws_another_start(given) -> None:
    for network in NETWORKS.values():
        first, second = (folders.open_folder(given(network, seed)) for seed in (1, 2))
        assert first.tensors.keys() == second.tensors.keys()
        drawn = ("first/input", "pictures", *_weights("initial", first), *_weights("start", first))
        for name in drawn:
            one, other = (folders.array(made.tensors[name]) for made in (first, second))
            assert not np.array_equal(one, other), name
        starts = [request.read_start(made) for made in (first, second)]
        assert starts[0].batches != starts[1].batches


def _weights(place: str, made: Folder) -> list[str]:
    return [f"{place}/{name}" for name in made.under(f"{place}/") if name.endswith("/weight")]


@pytest.mark.parametrize(
    "name",
    ["torch", *(pytest.param(name, marks=pytest.mark.long) for name in ("jax", "tensorflow"))],
)
@pytest.mark.parametrize("network", DROPPING)
def test_another_seed_draws_other_masks(name, network, prove, places) -> None:
    """From one start: what a step drops is all that is left to differ."""
    after = []
    for seed in (1, 1, 2):
        prove(name, NETWORKS[network], seed=seed, start=1)
        made = folders.open_made(Contained(places[-1]), places[-1] / "proved")
        after.append({key: folders.array(one) for key, one in made.tensors.items()})
    first, again, other = after
    assert all(np.array_equal(one, again[key]) for key, one in first.items())
    assert any(not np.array_equal(one, other[key]) for key, one in first.items())
