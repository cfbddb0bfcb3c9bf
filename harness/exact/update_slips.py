"""Reckon an optimiser's first update with its usual slips, to name the one that is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from harness.exact.layer import Array
from harness.exact.passes import State
from harness.exact.slips import only
from harness.exact.training import change_of, clipped
from harness.worker.network.shapes import decayed
from harness.worker.network.workload import SGD, Adam, AdamW, Training, clip


def of_first_update(
    workload: Training,
    batch: int,
    name: str,
    state: State,
    gradients: State,
    agrees: Callable[[Array], bool],
) -> str:
    """Say which slip alone moves a parameter as it was found; empty where none does."""
    value, slips = state[name], _slips(workload, batch, name, state, gradients)
    return only(words for words, changed in slips if agrees(value - changed))


def _slips(
    workload: Training, batch: int, name: str, state: State, gradients: State
) -> Iterator[tuple[str, Array]]:
    """Name each slip, and give what it takes away from the parameter."""
    rule, value, raw, most = (
        workload.optimiser,
        state[name],
        gradients[name],
        clip(workload.optimiser),
    )
    right = clipped(workload, gradients)[name]

    def change(gradient: Array, called: str = name, optimiser: SGD | Adam | AdamW = rule) -> Array:
        other = replace(workload, optimiser=optimiser)
        return change_of(other, batch, {})(called, value, gradient, 1)

    if most is not None:
        yield "no clipping", change(raw)
        yield "clipping item by item", change(np.clip(raw, -most, most))
    if isinstance(rule, Adam) or not rule.weight_decay:
        return
    heavy = decayed(workload.network)
    if name not in heavy:
        yield "a decay of biases and norms too", change(right, called=heavy[0])
        return
    yield "no decay", change(right, optimiser=replace(rule, weight_decay=0.0))
    if isinstance(rule, AdamW):
        plain = replace(rule, weight_decay=0.0)
        summed = right + rule.weight_decay * value
        yield "a decay added to the gradient", change(summed, optimiser=plain)
