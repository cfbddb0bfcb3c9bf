"""Tell a dropout where a network has none: in what a layer gives, or in attention's shares.

What is dropped is drawn, so no output can be reckoned for it; but it can be read off the output
that was found, and reckoned again with just that missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.exact.attention import flat, headed, met, pinned, seen, softmax
from harness.exact.layer import Array
from harness.worker.network.sequence_layers import Attention

Agrees = Callable[[Array], bool]


def of_dropouts(layer: Any, x: Array, found: Array, right: Array, agrees: Agrees) -> Iterator[str]:
    """Name the dropout that a layer's output was found with."""
    yield from _of_output(found, right, agrees)
    if isinstance(layer, Attention):
        yield from _of_shares(layer, x, found, agrees)


def _of_output(found: Array, right: Array, agrees: Agrees) -> Iterator[str]:
    """Tell by zeros; one that scales nothing up is as well a ReLU's, so it is not named."""
    counts = right != 0
    is_dropped = counts & (found == 0)
    if not _is_drawn(is_dropped[counts], is_dropped):
        return
    is_left = counts & ~is_dropped
    gain = float(np.median(found[is_left] / right[is_left]))
    left = np.where(is_dropped, 0.0, right)
    if agrees(left * gain) and not agrees(left):
        yield f"a dropout of about {1 - 1 / gain:.2g}"


def _of_shares(layer: Attention, x: Array, found: Array, agrees: Agrees) -> Iterator[str]:
    """Tell by queries that see no more keys than a head has numbers: these say what each counted.

    For others many choices of keys may give one output, so nothing is read off them.
    """
    how = pinned(layer)
    queries, keys, values = met(layer, x, how)
    shares = softmax(seen(queries @ keys.swapaxes(2, 3) * how.scale, how))
    length = x.shape[1]
    sights = [(at, at + 1 if layer.causal else length) for at in range(length)]
    mixed, factors = headed(found, layer.heads), np.ones_like(shares)
    is_told = np.zeros(shares.shape[2:], dtype=bool)
    for at, count in sights:
        if count > layer.head:
            continue
        terms = (shares[:, :, at, :count, None] * values[:, :, :count]).swapaxes(2, 3)
        factors[:, :, at, :count] = (np.linalg.pinv(terms) @ mixed[:, :, at, :, None])[..., 0]
        is_told[at, :count] = True
    is_dropped: npt.NDArray[np.bool_] = np.logical_and(is_told, np.abs(factors) < 0.5)
    read = is_dropped[..., is_told]
    if not _is_drawn(read, is_dropped):
        return
    gain = float(np.median(factors[..., is_told][~read]))
    rows = is_told.any(axis=1, keepdims=True)

    def with_factors(those: Array) -> Array:
        return flat(np.where(rows, (shares * those) @ values, mixed))

    left = np.where(is_dropped, 0.0, 1.0)
    if agrees(with_factors(gain * left)) and not agrees(with_factors(gain * np.ones_like(left))):
        if agrees(with_factors(left)):
            yield "a dropout without its scale"  # too few shares are read to tell its rate
        else:
            yield f"a dropout of about {1 - 1 / gain:.2g}"


def _is_drawn(each: npt.NDArray[np.bool_], by_sample: npt.NDArray[np.bool_]) -> bool:
    """Say whether some is dropped and some not, and not the same of every sample, as by a mask."""
    return bool(each.any() and not each.all() and (by_sample != by_sample[:1]).any())
