"""The losses in JAX: the mean over a batch, or the part of it that a micro-batch adds.

Each is a sum of what a micro-batch gives over how much there is in the ``whole`` batch's target,
which is its own where there is one: where positions are masked, a mean of means would be another.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

import jax
from jax import numpy as jnp

from harness.worker.network.workload import MASKED


def _mean_squared_error(output: Any, target: Any, whole: Any) -> Any:
    return jnp.sum(jnp.square(output - target)) / whole.size


def _cross_entropy(output: Any, target: Any, whole: Any) -> Any:
    logarithms = jax.nn.log_softmax(output)
    return -jnp.sum(jnp.take_along_axis(logarithms, target[:, None], axis=1)) / len(whole)


def _token_cross_entropy(output: Any, target: Any, whole: Any) -> Any:
    is_asked = target != MASKED
    logarithms = jax.nn.log_softmax(output)
    chosen = jnp.take_along_axis(logarithms, jnp.where(is_asked, target, 0)[..., None], axis=-1)
    return -jnp.sum(jnp.where(is_asked, chosen[..., 0], 0)) / jnp.sum(whole != MASKED)


def _token_and_pair_cross_entropy(output: Any, target: Any, whole: Any) -> Any:
    tokens, pair = output
    of_pair = _cross_entropy(pair, target[:, -1], whole)
    return _token_cross_entropy(tokens, target[:, :-1], whole[:, :-1]) + of_pair


LOSSES: Dict[str, Callable[[Any, Any, Any], Any]] = {
    "cross-entropy": _cross_entropy,
    "mean-squared-error": _mean_squared_error,
    "token-cross-entropy": _token_cross_entropy,
    "token-and-pair-cross-entropy": _token_and_pair_cross_entropy,
}
