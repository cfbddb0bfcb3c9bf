"""The meaning of each word of sequences: the shape it gives, what it holds and multiplies."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence

from harness.worker.network.rule import (
    INPUT,
    NONE,
    RESULT,
    ImpossibleNetwork,
    Parameter,
    Rule,
    SequenceShape,
    Shape,
    bare,
    no_branches,
    no_macs,
    nothing,
    positive,
    product,
    same,
)
from harness.worker.network.sequence_layers import (
    GELU,
    Attention,
    ClassToken,
    Embedding,
    Gather,
    LayerNorm,
    Positions,
    RMSNorm,
    Segments,
    Select,
    SiLU,
    TiedDense,
    ToSequence,
)


def _sequence(path: str, shape: Shape) -> SequenceShape:
    if not isinstance(shape, SequenceShape):
        raise ImpossibleNetwork(path, "it needs a sequence, not {}".format(shape))
    return shape


def _embedding(layer: Embedding, path: str, shape: Shape) -> Shape:
    positive(path, vocabulary=layer.vocabulary, features=layer.features)
    if len(shape) != 1:
        raise ImpossibleNetwork(path, "it needs tokens, not {}".format(shape))
    return SequenceShape(shape[0], layer.features)


def _embedding_parameters(layer: Embedding, _shape: Shape) -> Sequence[Parameter]:
    table = (layer.vocabulary, layer.features)
    return [Parameter("weight", table, 0.0, layer.deviation)]


def _positions(layer: Positions, path: str, shape: Shape) -> Shape:
    entering = _sequence(path, shape)
    if entering.length > layer.length:
        raise ImpossibleNetwork(
            path, "it holds {} positions of {}".format(layer.length, entering.length)
        )
    return entering


def _positions_parameters(layer: Positions, shape: Shape) -> Sequence[Parameter]:
    return [Parameter("weight", (layer.length, shape[1]), 0.0, layer.deviation)]


def _segments(layer: Segments, path: str, shape: Shape) -> Shape:
    entering = _sequence(path, shape)
    positive(path, count=layer.count)
    if entering.length % layer.count:
        raise ImpossibleNetwork(
            path, "{} segments do not divide {} positions".format(layer.count, entering.length)
        )
    return entering


def _segments_parameters(layer: Segments, shape: Shape) -> Sequence[Parameter]:
    return [Parameter("weight", (layer.count, shape[1]), 0.0, layer.deviation)]


def _class_token(_layer: ClassToken, path: str, shape: Shape) -> Shape:
    entering = _sequence(path, shape)
    return SequenceShape(entering.length + 1, entering.features)


def _class_token_parameters(layer: ClassToken, shape: Shape) -> Sequence[Parameter]:
    return [Parameter("weight", (1, shape[1]), 0.0, layer.deviation)]


def _to_sequence(_layer: ToSequence, path: str, shape: Shape) -> Shape:
    if isinstance(shape, SequenceShape) or len(shape) < 2:
        raise ImpossibleNetwork(path, "it needs spatial dimensions, not {}".format(shape))
    return SequenceShape(product(shape[1:]), shape[0])


def _each_position(_layer: Any, path: str, shape: Shape) -> Shape:
    return _sequence(path, shape)


def _layer_norm_parameters(layer: LayerNorm, shape: Shape) -> Sequence[Parameter]:
    gamma = Parameter("gamma", shape[1:], 1.0, 0.0)
    return [gamma, *([Parameter("beta", shape[1:], 0.0, 0.0)] if layer.bias else [])]


def _rms_norm_parameters(_layer: RMSNorm, shape: Shape) -> Sequence[Parameter]:
    return [Parameter("gamma", shape[1:], 1.0, 0.0)]


def _attention(layer: Attention, path: str, shape: Shape) -> Shape:
    entering = _sequence(path, shape)
    positive(path, heads=layer.heads, kv_heads=layer.kv_heads, head=layer.head)
    if layer.heads % layer.kv_heads:
        raise ImpossibleNetwork(
            path, "{} key/value heads do not divide {}".format(layer.kv_heads, layer.heads)
        )
    if layer.rotary is not None and layer.head % 2:
        raise ImpossibleNetwork(path, "a head of {} has no pairs to turn".format(layer.head))
    needed = (layer.heads + 2 * layer.kv_heads) * layer.head
    if entering.features != needed:
        raise ImpossibleNetwork(
            path, "it needs {} features, and {} enter".format(needed, entering.features)
        )
    return SequenceShape(entering.length, layer.heads * layer.head)


def _attention_macs(_layer: Attention, shape: Shape, output: Shape) -> int:
    """Multiply queries by keys and shares by values, at all positions (a mask hides, no more)."""
    return 2 * shape[0] * product(output)


def _select(layer: Select, path: str, shape: Shape) -> Shape:
    entering = _sequence(path, shape)
    _within(path, layer.position, entering)
    return (entering.features,)


def _gather(layer: Gather, path: str, shape: Shape) -> Shape:
    entering = _sequence(path, shape)
    positive(path, positions=len(layer.positions))
    for position in layer.positions:
        _within(path, position, entering)
    if len(set(layer.positions)) < len(layer.positions):
        raise ImpossibleNetwork(path, "it takes a position twice")
    return SequenceShape(len(layer.positions), entering.features)


def _within(path: str, position: int, shape: SequenceShape) -> None:
    if not 0 <= position < shape.length:
        raise ImpossibleNetwork(
            path, "there is no position {} of {}".format(position, shape.length)
        )


def _tied_dense(layer: TiedDense, path: str, shape: Shape) -> Shape:
    return SequenceShape(_sequence(path, shape).length, layer.features)


def _tied_dense_parameters(layer: TiedDense, _shape: Shape) -> Sequence[Parameter]:
    return [Parameter("bias", (layer.features,), 0.0, 0.0)] if layer.bias else []


def by_matrix(_layer: Any, shape: Shape, output: Shape) -> int:
    """Multiply, for each item of the output, all features that enter."""
    return product(output) * shape[-1]


def _learned(
    output: Callable[..., Shape],
    parameters: Callable[[Any, Shape], Sequence[Parameter]],
    recalled: str,
) -> Rule:
    """Describe a word that holds numbers and multiplies nothing that counts."""
    return Rule(output, parameters, nothing, no_macs, True, no_branches, recalled)


SEQUENCE_RULES: Dict[type, Rule] = {
    Embedding: _learned(_embedding, _embedding_parameters, NONE),
    Segments: _learned(_segments, _segments_parameters, NONE),
    Positions: _learned(_positions, _positions_parameters, NONE),
    ClassToken: _learned(_class_token, _class_token_parameters, NONE),
    ToSequence: Rule(_to_sequence, nothing, nothing, no_macs, False, no_branches, NONE),
    LayerNorm: _learned(_each_position, _layer_norm_parameters, RESULT),
    RMSNorm: _learned(_each_position, _rms_norm_parameters, RESULT),
    Attention: Rule(_attention, nothing, nothing, _attention_macs, True, no_branches, RESULT),
    GELU: bare(same, RESULT),
    SiLU: bare(same, RESULT),
    Select: bare(_select, NONE),
    Gather: bare(_gather, NONE),
    TiedDense: Rule(
        _tied_dense, _tied_dense_parameters, nothing, by_matrix, True, no_branches, INPUT
    ),
}
