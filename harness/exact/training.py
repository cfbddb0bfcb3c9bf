"""Compute losses and optimisers: what a training step does to every parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.exact.layer import Array
from harness.exact.passes import Pass, State
from harness.worker.network.shapes import decayed
from harness.worker.network.workload import MASKED, SGD, Adam, AdamW, Training, clip

_PART = 1 << 15


@dataclass(frozen=True)
class Step:
    """One whole training step."""

    passed: Pass
    loss: float
    state: State
    """After it."""


def steps(workload: Training, state: State, x: Array, target: Any, count: int) -> Iterator[Step]:
    """Take so many steps on one batch, from a fresh optimiser."""
    change = change_of(workload, len(x), {})
    for number in range(1, count + 1):
        passed = Pass(workload.network, state, x)
        value, slope = loss(workload.loss, passed.output, target)
        passed.backward(slope)
        moved = {}
        for name, gradient in clipped(workload, passed.gradients).items():
            changed = change(name, state[name], gradient, number)
            moved[name] = np.subtract(state[name], changed, out=changed)
        state = {**moved, **passed.statistics}
        yield Step(passed, value, state)


def change_of(workload: Training, batch: int, moments: dict[str, Array]) -> Change:
    """Give the optimiser's rule for a batch of a step.

    ``moments`` is what it keeps, as PARAMETER/MOMENT; one that is missing is 0. Each change
    replaces what it moves.
    """
    return OPTIMISERS[type(workload.optimiser)](workload.optimiser, workload, batch, moments)


def clipped(workload: Training, gradients: Mapping[str, Array]) -> Mapping[str, Array]:
    """Scale all gradients down together, where their norm is above what the optimiser allows."""
    most = clip(workload.optimiser)
    if most is None:
        return gradients
    norm = np.sqrt(sum(float(np.vdot(one, one)) for one in gradients.values()))
    return gradients if norm <= most else {k: one * (most / norm) for k, one in gradients.items()}


def loss(kind: str, output: Array, target: Any) -> tuple[float, Array]:
    """Give a loss and its gradient."""
    return LOSSES[kind](output, target)


def _mean_squared_error(output: Array, target: Any) -> tuple[float, Array]:
    off = output - target
    return float(np.mean(off * off)), 2 * off / off.size


def _token_cross_entropy(output: Array, target: Any) -> tuple[float, Array]:
    """Take the mean over all positions of all samples whose target is not masked."""
    is_asked = target != MASKED
    value, slope = _cross_entropy(output[is_asked], target[is_asked])
    whole = np.zeros_like(output)
    whole[is_asked] = slope
    return value, whole


def _token_and_pair_cross_entropy(output: Array, target: Any) -> tuple[float, Array]:
    """Add up the losses of two heads; the last two numbers are the sample's."""
    tokens, pair = output[:, :-2], output[:, -2:]
    shape = (*target[:, :-1].shape, -1)
    of_tokens, slope = _token_cross_entropy(tokens.reshape(shape), target[:, :-1])
    of_pair, more = _cross_entropy(pair, target[:, -1])
    return of_tokens + of_pair, np.concatenate([slope.reshape(tokens.shape), more], axis=1)


def _cross_entropy(output: Array, target: Any) -> tuple[float, Array]:
    samples = np.arange(len(output))
    shifted = output - output.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    slope = np.exp(logs)
    slope[samples, target] -= 1
    return float(-np.mean(logs[samples, target])), slope / len(output)


Change = Callable[[str, Array, Array, int], Array]
"""Say from a parameter's name, value, gradient and the step's number what to take away."""


def _momentum(optimiser: SGD, workload: Training, batch: int, moments: dict[str, Array]) -> Change:
    """Rate v, where v = momentum v + gradient + decay w; only weights decay, no bias, no norm."""
    heavy = frozenset(decayed(workload.network))
    scaled = batch / optimiser.rate_batch if optimiser.rate_batch else 1.0

    def change(name: str, value: Array, gradient: Array, _number: int) -> Array:
        velocity, moved = np.empty_like(gradient), np.empty_like(gradient)
        before = moments.get(f"{name}/velocity")
        decay = optimiser.weight_decay if name in heavy else 0.0
        for part in _parts(gradient):
            force = velocity[part]
            force[...] = gradient[part]
            if decay:
                force += decay * value[part]
            if before is not None:
                force += optimiser.momentum * before[part]
            np.multiply(force, optimiser.rate * scaled, out=moved[part])
        moments[f"{name}/velocity"] = velocity
        return moved

    return change


def _parts(values: Array) -> Iterator[slice]:
    """Cut rows into parts that a processor's cache holds: there may be 40 million items."""
    rows = max(1, _PART * len(values) // max(1, values.size))
    for first in range(0, len(values), rows):
        yield slice(first, first + rows)


def _adamw(optimiser: AdamW, workload: Training, batch: int, moments: dict[str, Array]) -> Change:
    """Adam, and beside it rate * decay * w, which enters no moment, for weights alone."""
    heavy = frozenset(decayed(workload.network))
    plain = _adam(optimiser, workload, batch, moments)

    def change(name: str, value: Array, gradient: Array, number: int) -> Array:
        moved = plain(name, value, gradient, number)
        if name in heavy:
            moved += optimiser.rate * optimiser.weight_decay * value
        return moved

    return change


def _adam(
    optimiser: Adam | AdamW, _workload: Training, _batch: int, moments: dict[str, Array]
) -> Change:
    """Adam: rate * first / (sqrt(second) + epsilon), moments corrected for having begun at 0."""
    beta1, beta2 = optimiser.beta1, optimiser.beta2

    def change(name: str, _value: Array, gradient: Array, number: int) -> Array:
        first, second = f"{name}/first", f"{name}/second"
        nothing = np.zeros(())
        moments[first] = beta1 * moments.get(first, nothing) + (1 - beta1) * gradient
        moments[second] = beta2 * moments.get(second, nothing) + (1 - beta2) * gradient**2
        mean = moments[first] / (1 - beta1**number)
        size = moments[second] / (1 - beta2**number)
        moved: Array = optimiser.rate * mean / (np.sqrt(size) + optimiser.epsilon)
        return moved

    return change


LOSSES: Mapping[str, Callable[[Array, Any], tuple[float, Array]]] = {
    "cross-entropy": _cross_entropy,
    "mean-squared-error": _mean_squared_error,
    "token-cross-entropy": _token_cross_entropy,
    "token-and-pair-cross-entropy": _token_and_pair_cross_entropy,
}
OPTIMISERS: Mapping[type, Callable[[Any, Training, int, dict[str, Array]], Change]] = {
    SGD: _momentum,
    Adam: _adam,
    AdamW: _adamw,
}
