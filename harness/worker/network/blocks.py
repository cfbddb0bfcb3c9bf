"""Find a network's blocks, and what a step computes twice that keeps only what enters them.

A block begins with a residual, and goes on until a residual comes of a form that it has already:
GPT-2's is attention with the dense layers behind it, ResNet's a bottleneck with its ReLU. The last
one ends as the one before it does, or with its last residual where there is no other. A form is
made of the kinds of layers in a residual's body: neither names nor sizes tell, nor whether the
shortcut projects, as that of a stage's first block does.

On the way back a block's layers are computed again from what entered it, though not all of them: a
product's gradient looks at what entered the product, not at what it gave, so that one at the end of
a block is made once. Compilers leave out whatever no gradient looks at. What goes layer by layer
instead stops where the last of that is known, and makes all that stands before it.
"""

from __future__ import annotations

from typing import Any, FrozenSet, List, NamedTuple, Sequence, Set, Tuple

from harness.worker.network.layer_rules import RULES
from harness.worker.network.layers import Layer, Network, Residual
from harness.worker.network.rule import DRAWN, INPUT, NONE, RESULT
from harness.worker.network.shapes import branches, macs_of_passes, sites

BEGINS = Residual
"""The word that a block begins with; no other one with layers inside does."""


class Part(NamedTuple):
    """Layers of a network that follow each other: a block, or what stands between two."""

    layers: Tuple[Layer, ...]
    is_block: bool


def parts(network: Network) -> List[Part]:
    """Part a network's layers into its blocks and what stands before, between and behind them."""
    layers = network.layers
    spans = _spans(layers)
    found, end = [], 0
    for first, behind in spans:
        found += [Part(layers[end:first], False), Part(layers[first:behind], True)]
        end = behind
    return [one for one in (*found, Part(layers[end:], False)) if one.layers]


def has_blocks(network: Network) -> bool:
    """Tell whether a network has any blocks."""
    return any(one.is_block for one in parts(network))


def computed_again(network: Network, *, in_order: bool) -> FrozenSet[str]:
    """Name the layers of all blocks that are computed a second time, for the gradients.

    ``in_order``: layer by layer up to the last that a gradient looks at; else those alone.
    """
    found: Set[str] = set()
    for part in parts(network):
        if part.is_block and in_order:
            found.update(_up_to_last(part.layers, network))
        elif part.is_block:
            _mark_needed(part.layers, "", False, found)
    return frozenset(found)


def macs_computed_again(network: Network, *, in_order: bool) -> int:
    """Count the multiplications of a sample that a step makes a second time."""
    again = computed_again(network, in_order=in_order)
    return sum(forward for path, (forward, _) in macs_of_passes(network).items() if path in again)


def _spans(layers: Sequence[Layer]) -> List[Tuple[int, int]]:
    """Say of each block where it begins and what stands behind it."""
    starts: List[int] = []
    forms: Set[Any] = set()
    last = 0
    for at, layer in enumerate(layers):
        if type(layer) is BEGINS:
            form, last = _form(layer.body), at
            if not starts or form in forms:
                starts.append(at)
                forms = set()
            forms.add(form)
    if not starts:
        return []
    end = last + 1
    if len(starts) > 1:
        for kind in _tail(layers[starts[-2] : starts[-1]]):
            if end == len(layers) or type(layers[end]) is not kind:
                break
            end += 1
    return list(zip(starts, (*starts[1:], end)))


def _tail(layers: Sequence[Layer]) -> List[type]:
    """Give the kinds of layers behind a block's last residual."""
    residuals = [at for at, layer in enumerate(layers) if type(layer) is BEGINS]
    return [type(layer) for layer in layers[residuals[-1] + 1 :]]


def _form(layers: Sequence[Layer]) -> Tuple[Any, ...]:
    return tuple((type(layer), *(_form(row) for row in branches(layer))) for layer in layers)


def _up_to_last(layers: Sequence[Layer], network: Network) -> List[str]:
    """Name what is computed before the last numbers that a gradient looks at are known."""
    names = {layer.name for layer in layers}
    inside = [site for site in sites(network) if site.path.partition("/")[0] in names]
    while inside and RULES[type(inside[-1].layer)].recalled == NONE:
        inside.pop()
    if inside and RULES[type(inside[-1].layer)].recalled == INPUT:
        inside.pop()
    return [site.path for site in inside]


def _mark_needed(layers: Sequence[Layer], prefix: str, is_needed: bool, found: Set[str]) -> bool:
    """Find, from the end of a row, what a gradient looks at; say whether that is its input too.

    ``is_needed``: whether what the row gives is looked at.
    """
    for layer in reversed(layers):
        path, recalled = prefix + layer.name, RULES[type(layer)].recalled
        if is_needed or recalled in (RESULT, DRAWN):
            found.add(path)
        inner = branches(layer)
        if inner:
            is_used = is_needed or recalled == RESULT
            ends = [_mark_needed(row, path + "/", is_used, found) for row in inner]
            is_needed = any(ends)
        else:
            is_needed = is_needed or recalled in (RESULT, INPUT)
    return is_needed
