"""Weights that are bfloat16 themselves are held to what rounding leaves of an update."""

from __future__ import annotations

import re

import pytest

from harness.gate.proof.untrained import Untrained
from tests.gate.proof.planted import on_jax, on_torch
from workloads import tinycnn, tinyvit

pytestmark = pytest.mark.framework

WIDE = "is held in more digits than bfloat16 has"
MASTERS = {
    "torch": {
        on_torch.FOLDER + "training.py": ("narrow(self.network)", "pass"),
        on_torch.FOLDER + "settings.py": (
            'AUTOCAST = {"bf16"',
            'AUTOCAST = {"bf16-pure": torch.bfloat16, "bf16"',
        ),
    },
    "jax": {
        on_jax.FOLDER + "state.py": ("jnp.dtype(precision_of(precision).held)", "jnp.float32"),
    },
}
FRAMEWORKS = {"torch": on_torch, "jax": on_jax}
NAMED = {
    "no update": "no weight moves",
    "momentum lost": "momentum is .* where 0.9 is asked|keeps no velocity",
    "another momentum": "momentum is 0.8",
    "a rate doubled": "2 times as far as its rate says",
    "half the batch": "the gradient of fc/",
    "a frozen layer": "fc/weight is not trained",
}


@pytest.mark.planted
@pytest.mark.parametrize(
    ("name", "fault"),
    [(name, f) for name in FRAMEWORKS for f in NAMED if f in FRAMEWORKS[name].FAULTS],
)
def test_a_fault_is_named_though_weights_are_rounded(name, fault, prove, planted) -> None:
    module = FRAMEWORKS[name]
    _, file, change, _ = module.FAULTS[fault]
    with pytest.raises((Untrained, AssertionError)) as caught:
        prove(name, tinycnn, {module.FOLDER + file: change}, precision="bf16-pure")
    named = re.search(f"{NAMED[fault]}|one more step changes nothing", str(caught.value))
    said = named and (str(caught.value) if isinstance(caught.value, Untrained) else named[0])
    planted(name, f"{fault}, in bf16-pure", "the proof", said)
    assert named, str(caught.value)


@pytest.mark.planted
@pytest.mark.parametrize("network", [tinycnn, tinyvit])
@pytest.mark.parametrize("name", MASTERS)
def test_weights_that_are_kept_in_float32_are_named(name, network, prove, planted) -> None:
    with pytest.raises(Untrained, match=WIDE) as caught:
        prove(name, network, MASTERS[name], precision="bf16-pure")
    planted(name, "master weights where none are asked for", "the proof", str(caught.value))
