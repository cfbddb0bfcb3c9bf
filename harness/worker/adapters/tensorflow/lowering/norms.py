"""Normalise by the batch, or by neighbouring channels."""

from __future__ import annotations

from typing import Any, Sequence

import numpy
import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow.lowering.layer_style import Pass, Style
from harness.worker.adapters.tensorflow.lowering.layouts import Spot
from harness.worker.network.layers import LRN, BatchNorm


def batch_norm(spot: Spot, now: Pass, x: Any) -> Any:
    """Normalise each channel by the batch, and move the running statistics."""
    layer = spot.layer
    assert isinstance(layer, BatchNorm)
    gamma, beta, mean, variance = (
        now.values["{}/{}".format(spot.path, kind)]
        for kind in ("gamma", "beta", "mean", "variance")
    )
    norm = _norm_in_float64 if now.style.dtype == tf.float64 else _norm_fused
    y, new_mean, new_variance = norm(spot, now.style, x, (gamma, beta, mean, variance))
    now.moved[spot.path + "/mean"] = new_mean
    now.moved[spot.path + "/variance"] = new_variance
    return y


def _norm_fused(spot: Spot, style: Style, x: Any, state: Sequence[Any]) -> Any:
    """Use the fused operation; its second moment is Bessel-corrected, as the vocabulary wants.

    The raw operation, because ``tf.nn.fused_batch_norm`` raises epsilon to 1.001e-5. It knows four
    dimensions; others are reshaped, which moves nothing.
    """
    layer = spot.layer
    assert isinstance(layer, BatchNorm)
    gamma, beta, mean, variance = state
    shape, last = x.shape, style.channels_last or len(x.shape) == 2
    apart = x
    if len(shape) != 4:
        channels = spot.input[0]
        apart = tf.reshape(
            x,
            [-1, 1, 1, channels]
            if last and len(shape) == 2
            else [shape[0], -1, 1, channels]
            if last
            else [shape[0], channels, -1, 1],
        )
    common = {
        "x": apart,
        "scale": gamma,
        "offset": beta,
        "epsilon": layer.epsilon,
        "data_format": "NHWC" if last else "NCHW",
        "is_training": True,
    }
    if tf.version.VERSION.startswith("1."):
        y, now_mean, now_variance = tf.raw_ops.FusedBatchNormV3(mean=[], variance=[], **common)[:3]
        now_mean = mean + layer.momentum * (now_mean - mean)
        now_variance = variance + layer.momentum * (now_variance - variance)
    else:
        y, now_mean, now_variance = tf.raw_ops.FusedBatchNormV3(
            mean=mean, variance=variance, exponential_avg_factor=layer.momentum, **common
        )[:3]
    return tf.reshape(y, shape) if len(shape) != 4 else y, now_mean, now_variance


def _norm_in_float64(spot: Spot, style: Style, x: Any, state: Sequence[Any]) -> Any:
    """Normalise by moments: the fused operation has no float64."""
    layer = spot.layer
    assert isinstance(layer, BatchNorm)
    gamma, beta, mean, variance = state
    rank = len(x.shape)
    channels = rank - 1 if style.channels_last or rank == 2 else 1
    axes = [axis for axis in range(rank) if axis != channels]
    broad = [-1 if axis == channels else 1 for axis in range(rank)]
    batch_mean, batch_variance = tf.nn.moments(x, axes)
    centred = x - tf.reshape(batch_mean, broad)
    inverse = tf.math.rsqrt(batch_variance + layer.epsilon) * gamma
    y = centred * tf.reshape(inverse, broad) + tf.reshape(beta, broad)
    count = int(numpy.prod([int(x.shape[axis]) for axis in axes]))
    unbiased = batch_variance * (count / max(count - 1, 1))
    return (
        y,
        mean + layer.momentum * (batch_mean - mean),
        variance + layer.momentum * (unbiased - variance),
    )


def lrn(spot: Spot, now: Pass, x: Any) -> Any:
    """Sum squares over neighbours as a 1 x 1 convolution with a band matrix.

    Twice as fast here as ``tf.nn.local_response_normalization``, whose kernels call ``pow`` and
    which exists neither in bfloat16 nor in float64; ``rsqrt`` replaces the usual power of -3/4.
    """
    layer, style = spot.layer, now.style
    assert isinstance(layer, LRN)
    channel = numpy.arange(spot.input[0])
    is_near = abs(channel[:, None] - channel[None, :]) <= layer.size // 2
    rank = len(x.shape) - 2
    band = tf.constant((is_near * layer.alpha).reshape((1,) * rank + is_near.shape), style.dtype)
    convolve = tf.nn.conv2d if rank == 2 else tf.nn.conv3d
    ones = [1] * (rank + 2)
    scale = layer.k + convolve(x * x, band, ones, "VALID", data_format=style.format(rank))
    if layer.beta == 0.75:
        return x * tf.math.rsqrt(scale * tf.sqrt(scale))
    return x * tf.pow(scale, -layer.beta)
