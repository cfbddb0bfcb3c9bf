"""Draw the gate's random weights and batches, equal on every machine and in every order.

Each tensor has a stream of its own, counted by Philox under a key that digests seed and name: a
layer more or less changes no other. Nothing starts at a value that would hide a mistake: biases and
shifts are not zero, running statistics not at 0 and 1. All values are float32, so that a framework
that computes in float32 starts from exactly the same ones.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from harness.worker.network.layers import Network, Tanh
from harness.worker.network.precisions import precision_of
from harness.worker.network.rule import product
from harness.worker.network.shapes import parameters, sites, statistic_shapes, vocabulary
from harness.worker.network.tokens import zipf
from harness.worker.network.workload import MASKED, Training

Array = npt.NDArray[np.float64]
Shape = tuple[int, ...]

_SEED = 20170605

_TO_TANH = 1 / 16
"""Weights before a tanh are drawn so much smaller. Driven to 15, as CosmoFlow's was, its slope of
1e-12 is only rounding: TensorFlow's was 2e-5 off torch's in float64, and 0 in float32."""


def initial(network: Network) -> Iterator[tuple[str, Array]]:
    """Draw every parameter and running statistic."""
    walked = sites(network)
    for site, following in zip_longest(walked, walked[1:]):
        gain = _TO_TANH if following and isinstance(following.layer, Tanh) else 1.0
        for name, tensor in parameters(site):
            spread = gain * math.sqrt(2 / product(tensor.shape[1:])) if tensor.deviation else 0.1
            values = normal(name, tensor.shape)  # changed in place: they may be 40 million
            values *= spread
            values += tensor.mean
            yield name, to("fp32", values)
        for name, shape in statistic_shapes(site):
            yield name, to("fp32", _STATISTICS[name.rpartition("/")[2]](name, shape))


def batch(
    workload: Training, samples: int
) -> tuple[Array | npt.NDArray[np.int64], npt.NDArray[np.int64] | Array]:
    """Draw inputs and targets."""
    drawn = inputs(workload.network, "input", samples)
    output = sites(workload.network)[-1].output
    return drawn, targets(workload.loss, "target", samples, output)


def inputs(network: Network, name: str, samples: int) -> Array | npt.NDArray[np.int64]:
    """Draw what a network is fed: numbers, or tokens as frequent as in a timed batch."""
    shape = (samples, *network.input)
    below = vocabulary(network)
    if below is None:
        return normal(name, shape)
    return np.array(zipf(number(name), product(shape), below), np.int64).reshape(shape)


def targets(loss: str, name: str, samples: int, output: Shape) -> npt.NDArray[np.int64] | Array:
    """Draw what a loss compares outputs of that shape with."""
    return TARGETS[loss](name, samples, output)


def number(name: str) -> int:
    """Draw a whole number, to seed another generator with."""
    return int(_stream(name).integers(2**62))


def distinct(name: str, shape: Shape, kernel: int) -> Array:
    """Draw values that differ within every window of a pool, in any precision.

    Where two values of a window are equal, frameworks may send the gradient to either of them.
    Small integers, exact everywhere, repeat with a period longer than the kernel.
    """
    period = kernel + 1
    spatial = len(shape) - 2
    place = np.zeros(shape[2:], dtype=np.int64)
    for axis, size in enumerate(shape[2:]):
        index = np.arange(size).reshape([-1 if one == axis else 1 for one in range(spatial)])
        place = place * period + index % period
    colours = period**spatial
    stream = _stream(name)
    orders = stream.permuted(np.tile(np.arange(colours), (shape[0] * shape[1], 1)), axis=1)
    values = orders[:, place.reshape(-1)].reshape(shape)
    result: Array = (values - colours // 2).astype(np.float64)
    return result


def normal(name: str, shape: Shape) -> Array:
    """Draw a standard normal tensor."""
    return to("fp32", _stream(name).standard_normal(shape))


_STATISTICS: Mapping[str, Callable[[str, Shape], Array]] = {
    "mean": lambda name, shape: 0.1 * normal(name, shape),
    "variance": lambda name, shape: 0.5 + _stream(name).random(shape),
}


def _stream(name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{_SEED}/{name}".encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


_MANTISSA = {"bf16": 7, "tf32": 10, "fp32": 23}


def to(precision: str, values: Array) -> Array:
    """Round to the nearest value, ties to even."""
    precision = precision_of(precision).products
    if precision == "fp16":
        return values.astype(np.float16).astype(np.float64)
    narrow = values.astype(np.float32)
    dropped = 23 - _MANTISSA[precision]
    if dropped == 0:
        return narrow.astype(np.float64)
    bits = narrow.view(np.uint32)
    half = np.uint32((1 << (dropped - 1)) - 1)
    odd = (bits >> np.uint32(dropped)) & np.uint32(1)
    kept = np.uint32(0xFFFFFFFF ^ ((1 << dropped) - 1))
    return ((bits + half + odd) & kept).view(np.float32).astype(np.float64)


def _classes(name: str, samples: int, output: Shape) -> npt.NDArray[np.int64]:
    return _stream(name).integers(output[0], size=samples)


def _vectors(name: str, samples: int, output: Shape) -> Array:
    return normal(name, (samples, *output))


def _token_classes(name: str, samples: int, output: Shape) -> npt.NDArray[np.int64]:
    """Draw a class for each position, and mask some: a mean over all of them would be another.

    Every second sample has twice as many: so would be a mean of the means of parts of the batch.
    Others are masked in each sample, or a loss that leaves those out would be the same.
    """
    length, classes = output
    stream = _stream(name)
    found = stream.integers(classes, size=(samples, length))
    places = (np.arange(length) + stream.integers(_MASKED_EVERY, size=(samples, 1))) % _MASKED_EVERY
    found[places == 0] = MASKED
    found[::2][places[::2] == 1] = MASKED
    return found


def _token_and_pair_classes(name: str, samples: int, output: Shape) -> npt.NDArray[np.int64]:
    length, classes, numbers = output
    tokens = _token_classes(name, samples, (length, classes))
    pair = _stream(f"{name}/pair").integers(numbers, size=(samples, 1))
    return np.concatenate([tokens, pair], axis=1)


_MASKED_EVERY = 5
TARGETS: Mapping[str, Callable[[str, int, Shape], npt.NDArray[np.int64] | Array]] = {
    "cross-entropy": _classes,
    "mean-squared-error": _vectors,
    "token-cross-entropy": _token_classes,
    "token-and-pair-cross-entropy": _token_and_pair_classes,
}
