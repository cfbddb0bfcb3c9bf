"""Run ceilings in JAX: the kernels that XLA makes of its layers, as large as is fair.

What a step gives is what the next one overwrites, so that no memory is asked for anew. The triad
counts three arrays, as STREAM does.
"""

from __future__ import annotations

from typing import Any, Mapping, Tuple

import jax
from jax import lax
from jax import numpy as jnp

from harness.worker.adapters.jax.settings import Settings
from harness.worker.adapters.jax.training import COMPUTE
from harness.worker.contracts import Unsupported
from harness.worker.network.workload import Ceiling

_CHANNELS, _WIDTH, _KERNEL = 128, 56, 3
_LAYOUT = ("NHWC", "HWIO", "NHWC")

Kernel = Tuple[Any, Tuple[Any, ...], float]
"""A function of what it overwrites and its operands, these, and the work of a step."""


class CeilingActivity:
    """One kernel, again and again on the same operands."""

    def __init__(self, kernel: Kernel, workload: Ceiling) -> None:
        step, self._operands, work = kernel
        self.units: Mapping[str, float] = {workload.unit: work}
        self._step = jax.jit(step, donate_argnums=0, keep_unused=True)
        self._out = jnp.zeros(*_like(jax.eval_shape(step, None, *self._operands)))

    def step(self) -> None:
        """Enqueue the kernel."""
        self._out = self._step(self._out, *self._operands)

    def sync(self) -> None:
        """Wait for the device."""
        jax.block_until_ready(self._out)

    def values(self) -> Mapping[str, float]:
        """Give no values: a ceiling has only its time."""
        return {}

    def agree(self, value: float) -> float:
        """Give the value back: a ceiling is measured by one rank."""
        return value


def activity(workload: Ceiling, settings: Settings, seed: int) -> CeilingActivity:
    """Make the operands and the kernel."""
    makers = {"gemm": _gemm, "convolution": _convolution, "triad": _triad}
    if workload.kernel not in makers:
        raise Unsupported("JAX has no kernel for '{}' here".format(workload.kernel))
    size = workload.device_size if settings.is_gpu else workload.size
    draw = jax.random.split(jax.random.key(seed))
    dtype = COMPUTE.get(settings.precision, jnp.float32)
    return CeilingActivity(makers[workload.kernel](size, dtype, draw), workload)


def _gemm(size: int, dtype: Any, draw: Any) -> Kernel:
    operands = tuple(jax.random.normal(one, (size, size), dtype) for one in draw)
    return (lambda _, left, right: left @ right), operands, 2.0 * size**3


def _convolution(size: int, dtype: Any, draw: Any) -> Kernel:
    images = jax.random.normal(draw[0], (size, _WIDTH, _WIDTH, _CHANNELS), dtype)
    weights = jax.random.normal(draw[1], (_KERNEL, _KERNEL, _CHANNELS, _CHANNELS), dtype)
    work = 2.0 * size * _WIDTH**2 * _CHANNELS**2 * _KERNEL**2

    def step(_: Any, images: Any, weights: Any) -> Any:
        return lax.conv_general_dilated(images, weights, (1, 1), "SAME", dimension_numbers=_LAYOUT)

    return step, (images, weights), work


def _triad(size: int, _: Any, draw: Any) -> Kernel:
    operands = tuple(jax.random.uniform(one, (size // 4,), jnp.float32) for one in draw)
    return (lambda _, first, second: first + 3.0 * second), operands, 3.0 * size


def _like(shape: Any) -> Tuple[Any, Any]:
    return shape.shape, shape.dtype
