"""Convolve with ``jax.lax``, in the way that XLA is fastest at.

- XLA convolves volumes on a CPU with its slowest loops, so there a volume is a sum of convolutions
  of its slices: forward and backward took a fifth of the time in float32 (``docs/measured.md``).
- There, too, a convolution of single positions is a product of matrices, which XLA multiplies much
  faster than it convolves: all of ResNet-50's step took two thirds of the time.
"""

from __future__ import annotations

from typing import Any

from jax import lax
from jax import numpy as jnp

from harness.worker.network.layers import Conv

SPATIAL = "DHW"


def convolved(net: Any, layer: Conv, x: Any, weight: Any) -> Any:
    """Convolve in the fastest way."""
    is_product = layer.kernel == 1 and layer.groups == 1 and not any(layer.pad)
    if net.is_cpu and net.channels_last and is_product:
        return _multiply(x, weight, layer.stride)
    convolve = _convolve_slices if net.is_cpu and x.ndim == 5 else _convolve
    return convolve(net, layer, x, weight)


def _multiply(x: Any, weight: Any, stride: int) -> Any:
    """Convolve single positions: a product of matrices."""
    met = x[(slice(None), *[slice(None, None, stride)] * (x.ndim - 2))]
    product = met.reshape(-1, x.shape[-1]) @ weight.reshape(x.shape[-1], -1)
    return product.reshape(*met.shape[:-1], -1)


def _convolve(net: Any, layer: Conv, x: Any, weight: Any) -> Any:
    letters = SPATIAL[-(x.ndim - 2) :]
    images = "N" + letters + "C" if net.channels_last else "NC" + letters
    kernels = letters + "IO" if net.channels_last else "OI" + letters
    return lax.conv_general_dilated(
        x,
        weight,
        window_strides=(layer.stride,) * len(letters),
        padding=[layer.pad] * len(letters),
        dimension_numbers=(images, kernels, images),
        feature_group_count=layer.groups,
    )


def _convolve_slices(net: Any, layer: Conv, x: Any, weight: Any) -> Any:
    """Convolve a volume: for each slice of the kernel, all slices it meets as a batch of images."""
    axis = 1 if net.channels_last else 2
    pads = [(0, 0)] * 5
    pads[axis] = layer.pad
    stacked = jnp.moveaxis(jnp.pad(x, pads), axis, 1)
    count = (stacked.shape[1] - layer.kernel) // layer.stride + 1
    total: Any = None
    for depth in range(layer.kernel):
        end = depth + (count - 1) * layer.stride + 1
        met = lax.slice_in_dim(stacked, depth, end, layer.stride, axis=1)
        images = met.reshape(-1, *met.shape[2:])
        kernel = weight[depth] if net.channels_last else weight[:, :, depth]
        part = _convolve(net, layer, images, kernel)
        total = part if total is None else total + part
    return jnp.moveaxis(total.reshape(-1, count, *total.shape[1:]), 1, axis)
