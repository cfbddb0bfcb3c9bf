"""Reckon a layer with the usual slips of its word, to name the one that a refused layer has.

Only what is off is reckoned again, so a gate that passes pays nothing for it. What fits two slips
of a word is named as neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from harness.exact.attention import attention, pinned
from harness.exact.dropouts import of_dropouts
from harness.exact.layer import Array, Forward
from harness.exact.layers import compute
from harness.exact.passes import State
from harness.exact.roundings import of_roundings
from harness.worker.network.layers import LRN, BatchNorm, Conv, Dense, LeakyReLU
from harness.worker.network.sequence_layers import (
    GELU,
    Attention,
    LayerNorm,
    RMSNorm,
    SiLU,
)
from harness.worker.network.shapes import Site, operands, parameter_shapes

Slip = tuple[str, Callable[..., Forward]]
"""What it is called, and how it is computed from input, operands and counts of windows."""


def of_layer(
    site: Site, state: State, x: Array, found: Array, agrees: Callable[[Array], bool]
) -> str:
    """Say which slip alone makes of a layer's input what was found; empty where none does."""
    own = {kind: state[name] for kind, name in operands(site).items()}
    slips = SLIPS.get(type(site.layer), _none)(site.layer)
    with np.errstate(all="ignore"):  # a norm without epsilon may divide by zero
        names = [name for name, forward in slips if agrees(forward(x, own, site.output[1:])[0])]
    right, _ = compute(site.layer, x, own, site.output[1:])
    if found.shape != right.shape or not np.all(np.isfinite(found)):
        return only(names)
    names += of_dropouts(site.layer, x, found, right, agrees)
    return only(names, of_roundings(site.layer, x, found, right))


def of_table(site: Site, x: Array, slope: Array, agrees: Callable[[Array], bool]) -> str:
    """Say whether a shared table's gradient is what its embedding alone sends back."""
    _, shape = parameter_shapes(site)[0]
    _, back = compute(site.layer, x, {"weight": np.zeros(shape)}, ())
    found = back(slope)[1]["weight"]
    return only(name for name in ("a head that trains no table",) if agrees(found))


def only(names: Iterable[str], rounded: Iterable[str] = ()) -> str:
    """Name a slip in a refusal, if it is the only one that fits."""
    fitting = [f"{name} would give" for name in names]
    fitting += [f"{name} would give (within its roundings)" for name in rounded]
    return f"; it is what {fitting[0]}" if len(fitting) == 1 else ""


def _none(_layer: Any) -> Iterator[Slip]:
    return iter(())


def _changed(layer: Any, **changes: Any) -> Callable[..., Forward]:
    return partial(compute, replace(layer, **changes))


def _of_attention(layer: Attention) -> Iterator[Slip]:
    right = pinned(layer)

    def mixed(**changes: Any) -> Callable[..., Forward]:
        return partial(attention, layer, mixing=replace(right, **changes))

    yield "a scale of 1/d", mixed(scale=1 / layer.head)
    yield "no scale", mixed(scale=1.0)
    if layer.causal:
        yield "a mask that shows one position too many", mixed(ahead=1)
        yield "a mask that hides a query's own position", mixed(ahead=-1)
        yield "no mask", mixed(ahead=None)
    else:
        yield "a causal mask", mixed(ahead=0)
    if 1 < layer.kv_heads < layer.heads:
        in_turn = tuple(head % layer.kv_heads for head in range(layer.heads))
        yield "key and value heads repeated in turn, not in groups", mixed(read=in_turn)
    if layer.rotary is not None:
        pairing = "halves" if layer.rotary.interleaved else "neighbours"
        other = replace(layer.rotary, interleaved=not layer.rotary.interleaved)
        yield f"a rotary pairing of {pairing}", _changed(layer, rotary=other)
        yield "no rotary turn", _changed(layer, rotary=None)


def _of_gelu(layer: GELU) -> Iterator[Slip]:
    yield f"a GELU by {'erf' if layer.tanh else 'tanh'}", _changed(layer, tanh=not layer.tanh)
    yield "a SiLU", partial(compute, SiLU(layer.name))


def _of_norm(layer: BatchNorm | LayerNorm | RMSNorm) -> Iterator[Slip]:
    yield "no epsilon", _changed(layer, epsilon=0.0)
    for epsilon in (1e-3, 1e-5, 1e-6):  # what frameworks take by themselves
        if epsilon != layer.epsilon:
            yield f"an epsilon of {epsilon:g}", _changed(layer, epsilon=epsilon)


def _of_lrn(layer: LRN) -> Iterator[Slip]:
    yield "an alpha divided by the size", _changed(layer, alpha=layer.alpha / layer.size)
    yield "an alpha times the size", _changed(layer, alpha=layer.alpha * layer.size)


def _of_leaky(layer: LeakyReLU) -> Iterator[Slip]:
    for slope in (0.0, 0.01, 0.2, 0.3):  # a ReLU's, and what frameworks take by themselves
        if slope != layer.slope:
            yield f"a slope of {slope:g}", _changed(layer, slope=slope)


def _of_biased(layer: Conv | Dense) -> Iterator[Slip]:
    if layer.bias:
        yield "no bias", _changed(layer, bias=False)


SLIPS: Mapping[type, Callable[[Any], Iterator[Slip]]] = {
    Attention: _of_attention,
    GELU: _of_gelu,
    BatchNorm: _of_norm,
    LayerNorm: _of_norm,
    RMSNorm: _of_norm,
    LRN: _of_lrn,
    LeakyReLU: _of_leaky,
    Conv: _of_biased,
    Dense: _of_biased,
}
