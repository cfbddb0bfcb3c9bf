"""Draw what an optimiser keeps as an examined update begins, so that its every rule shows after it.

In float32 moments are as large as gradients, or so large that a weight moves beyond its rounding.
In bfloat16 no moment does both: one that moves a weight by several units of its last place is
rounded by more than a gradient is large. So half of the items are *loud*: they show how weights
move, and what is kept of a moment. The others are *quiet*, as large as gradients: they show those.
Where a dropout's mask is read from a weight's moment, all are quieter still.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.exact.layer import Array
from harness.gate.proof import masks
from harness.gate.proof.expected_updates import Gradients, thinned
from harness.gate.tensors import draws
from harness.worker.network.workload import MOMENTS, SGD, Training, learning_rate

_STEP = 3.0
"""How many updates Adam is told it has made: its corrections show."""
_LOUD = 2.0**-4
"""Of a tensor's typical weight, how far a loud moment moves one: 8 to 16 units of a last place."""
_OVER_GRADIENTS = 32.0
"""What is kept of a loud moment is seen beside any gradient."""
_UNDER_GRADIENTS = 2.0**-4
"""How small moments are that masks are read from."""


def moments(
    workload: Training, batch: int, state: Mapping[str, Array], first: Gradients, held: str
) -> dict[str, Array]:
    """Draw the moments of every weight, and how many updates were made, if that is kept."""
    optimiser = workload.optimiser
    found: dict[str, Array] = {}
    for name, slope in first.gradients.items():
        scale, values = _size(slope), state[name]
        if held == "fp32":
            scales = np.full(values.shape, _plain(workload, scale, values, first.sizes[name]))
        else:
            scales = _apart(workload, batch, name, values, slope, first.sizes[name])
        for moment in MOMENTS[type(optimiser)]:
            drawn = draws.normal(f"proof/{moment}/{name}", values.shape)
            kept = scale**2 * (0.5 + drawn * drawn) if moment == "second" else scales * drawn
            found[f"{name}/{moment}"] = draws.to(held, kept)
    if not isinstance(optimiser, SGD):
        found["step"] = np.array(_STEP)
    return found


def _size(values: Array) -> float:
    return float(np.sqrt(np.mean(values * values)))


def _plain(workload: Training, scale: float, values: Array, size: float) -> float:
    """Make SGD's moments large enough to move a weight beyond its rounding."""
    optimiser = workload.optimiser
    if not isinstance(optimiser, SGD):
        return scale
    shows = 1e-3 * _size(values) / learning_rate(optimiser, 1)
    return max(scale, min(shows, 100 * size))


def _apart(
    workload: Training, batch: int, name: str, values: Array, slope: Array, size: float
) -> Array:
    """Make half of the moments loud, and the others quiet: of two with like gradients one each.

    Where a ReLU is dead no gradient comes: all that are quiet might lie there by chance.
    """
    optimiser, scale = workload.optimiser, _size(slope)
    if name in masks.readers(workload).values():
        return np.full(values.shape, _UNDER_GRADIENTS * scale)
    loud = _LOUD * _size(values) / learning_rate(optimiser, batch)
    if not isinstance(optimiser, SGD):  # which divides by the other moment's root
        made = _STEP + 1
        corrected = np.sqrt(1 - optimiser.beta2**made) / (1 - optimiser.beta1**made)
        loud *= scale / corrected
    pairs = np.argsort(np.abs(slope))[: slope.size // 2 * 2].reshape(-1, 2)
    drawn = draws.normal(f"proof/loud/{name}", (len(pairs),)) > 0
    scales = np.full(values.size, scale)
    given_back = thinned(scales)  # a view
    given_back[np.where(drawn, *pairs.T)] = max(loud, _OVER_GRADIENTS * size)
    return scales.reshape(values.shape)
