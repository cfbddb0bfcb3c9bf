"""Compute what slides a window over positions: convolutions and pools, and back.

All of them go through a kernel's cells: the items that one cell meets, one in each window, are a
strided slice of the padded input. A convolution is then one product of matrices for a block of
channels that fits into little memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from harness.exact.layer import Array, Forward, Own
from harness.worker.network.layers import AveragePool, Conv, MaxPool

_MOST_ITEMS = 1 << 24
"""How many items of all windows are laid out at once."""

Place = tuple[Any, ...]


def conv(layer: Conv, x: Array, own: Own, counts: Sequence[int]) -> Forward:
    """Multiply each window by each kernel and add up, group by group; add the bias."""
    weight = own["weight"]
    wide = _padded(x, layer, layer.pad[0], counts, 0.0)
    places = _places(layer, counts)
    y = np.empty((len(x), layer.channels, *counts))
    for channels, outputs in _groups(layer, x.shape[1]):
        total = np.zeros((outputs.stop - outputs.start, y[:, 0].size))
        for block in _blocks(channels, len(places) * y[:, 0].size):
            kernels = _kernels(weight, outputs, block, channels)
            total += kernels @ _laid_out(wide[:, block], places, counts)
        y[:, outputs] = total.reshape(-1, len(x), *counts).swapaxes(0, 1)
    if layer.bias:
        y += own["bias"].reshape(-1, *[1] * len(counts))

    def back(slope: Array) -> tuple[Array, Own]:
        found = {"weight": np.empty_like(weight)}
        reached = np.zeros_like(wide)
        for channels, outputs in _groups(layer, x.shape[1]):
            flat = np.ascontiguousarray(slope[:, outputs].swapaxes(0, 1))
            flat = flat.reshape(len(flat), -1)
            for block in _blocks(channels, len(places) * y[:, 0].size):
                inner = slice(block.start - channels.start, block.stop - channels.start)
                columns = _laid_out(wide[:, block], places, counts)
                part = found["weight"][outputs, inner]
                if part.flags.c_contiguous:
                    np.matmul(flat, columns.T, out=part.reshape(len(flat), -1))
                else:
                    part[...] = (flat @ columns.T).reshape(part.shape)
                kernels = _kernels(weight, outputs, block, channels)
                sent = (kernels.T @ flat).reshape(-1, len(places), len(x), *counts)
                for number, place in enumerate(places):
                    reached[:, block][place] += sent[:, number].swapaxes(0, 1)
        if layer.bias:
            found["bias"] = slope.sum(axis=(0, *range(2, slope.ndim)))
        return _unpadded(reached, layer.pad[0], x), found

    return y, back


def max_pool(layer: MaxPool, x: Array, _own: Own, counts: Sequence[int]) -> Forward:
    """Take the largest value of each window; its gradient goes back to the first such."""
    wide = _padded(x, layer, layer.pad[0], counts, -np.inf)
    places = _places(layer, counts)
    y = wide[places[0]].copy()
    chosen = np.zeros(y.shape, dtype=np.int64)
    for number, place in enumerate(places):
        is_larger = wide[place] > y
        np.copyto(y, wide[place], where=is_larger)
        chosen[is_larger] = number

    def back(slope: Array) -> tuple[Array, Own]:
        reached = np.zeros_like(wide)
        for number, place in enumerate(places):
            reached[place] += np.where(chosen == number, slope, 0.0)
        return _unpadded(reached, layer.pad[0], x), {}

    return y, back


def window_values(layer: MaxPool, x: Array, counts: Sequence[int]) -> Array:
    """Give what each window holds, a kernel's cells first."""
    wide = _padded(x, layer, layer.pad[0], counts, -np.inf)
    return np.stack([wide[place] for place in _places(layer, counts)])


def average_pool(layer: AveragePool, x: Array, _own: Own, counts: Sequence[int]) -> Forward:
    """Take the mean of each window."""
    wide = _padded(x, layer, 0, counts, 0.0)
    places = _places(layer, counts)
    total = np.zeros((*x.shape[:2], *counts))
    for place in places:
        total += wide[place]

    def back(slope: Array) -> tuple[Array, Own]:
        reached = np.zeros_like(wide)
        for place in places:
            reached[place] += slope / len(places)
        return _unpadded(reached, 0, x), {}

    return total / len(places), back


def _places(layer: Conv | MaxPool | AveragePool, counts: Sequence[int]) -> list[Place]:
    """Give for each cell of a kernel, in C order, what it meets: one item in each window."""
    cells = product(range(layer.kernel), repeat=len(counts))
    return [
        (
            ...,
            *(
                slice(first, first + layer.stride * (count - 1) + 1, layer.stride)
                for first, count in zip(cell, counts, strict=True)
            ),
        )
        for cell in cells
    ]


def _padded(
    x: Array,
    layer: Conv | MaxPool | AveragePool,
    before: int,
    counts: Sequence[int],
    value: float,
) -> Array:
    """Copy a batch into one that exactly holds all windows."""
    sizes = [layer.stride * (count - 1) + layer.kernel for count in counts]
    wide = np.full((*x.shape[:2], *sizes), value)
    inner, outer = _overlap(sizes, before, x)
    wide[inner] = x[outer]
    return wide


def _unpadded(reached: Array, before: int, x: Array) -> Array:
    slope = np.zeros(x.shape)
    inner, outer = _overlap(reached.shape[2:], before, x)
    slope[outer] = reached[inner]
    return slope


def _overlap(sizes: Sequence[int], before: int, x: Array) -> tuple[Place, Place]:
    """Say where in its padded form a batch lies, and what of it: windows may not reach its end."""
    kept = [min(size - before, own) for size, own in zip(sizes, x.shape[2:], strict=True)]
    inner = (..., *(slice(before, before + size) for size in kept))
    return inner, (..., *(slice(0, size) for size in kept))


def _groups(layer: Conv, channels: int) -> Iterator[tuple[slice, slice]]:
    """Pair the input channels of each group with its output channels."""
    entering, leaving = channels // layer.groups, layer.channels // layer.groups
    for group in range(layer.groups):
        yield (
            slice(group * entering, (group + 1) * entering),
            slice(group * leaving, (group + 1) * leaving),
        )


def _blocks(channels: slice, items: int) -> Iterator[slice]:
    """Cut channels, each of which lays out so many items, into what fits."""
    width = max(1, _MOST_ITEMS // items)
    for first in range(channels.start, channels.stop, width):
        yield slice(first, min(first + width, channels.stop))


def _laid_out(wide: Array, places: Sequence[Place], counts: Sequence[int]) -> Array:
    """Give a matrix: a row for each channel and cell, a column for each sample and window."""
    rows = np.empty((wide.shape[1], len(places), len(wide), *counts))
    for number, place in enumerate(places):
        rows[:, number] = wide[place].swapaxes(0, 1)
    return rows.reshape(wide.shape[1] * len(places), -1)


def _kernels(weight: Array, outputs: slice, block: slice, channels: slice) -> Array:
    inner = slice(block.start - channels.start, block.stop - channels.start)
    return weight[outputs, inner].reshape(outputs.stop - outputs.start, -1)
