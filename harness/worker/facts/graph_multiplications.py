"""Count in a graph that TensorFlow traced what its convolutions and products multiply.

Only what a call runs counts: what its results and effects follow from. The shapes of the graph's
tensors are known before it runs. TensorFlow itself is not needed to read it.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

from harness.worker.facts.multiplications import Tally, Uncounted
from harness.worker.network.rule import product

BRANCHES = ("If", "StatelessIf", "Case", "While", "StatelessWhile")
CALLS = ("PartitionedCall", "StatefulPartitionedCall")

Sizes = Tuple[int, ...]


def tally(graph: Any) -> Tally:
    """Count the multiplications of one call of a traced function."""
    found = Tally()
    _add(graph, found)
    return found


def _add(graph: Any, found: Tally) -> None:
    for one in _running(graph):
        if one.type in PRODUCTS:
            sizes = (tuple(tensor.shape.as_list()) for tensor in one.inputs)
            found.add((one.type, *sizes), PRODUCTS[one.type](one))
        elif one.type in CALLS or one.type in BRANCHES:
            _add_called(one, found)
        elif "Conv" in one.type or "MatMul" in one.type:
            raise Uncounted("nothing says what TensorFlow's '{}' multiplies".format(one.type))


def _running(graph: Any) -> Iterator[Any]:
    """Give each operation that a result or an effect of the graph follows from, once."""
    waiting: List[Any] = [tensor.op for tensor in graph.outputs]
    waiting += getattr(graph, "control_outputs", None) or []
    seen: Set[str] = set()
    while waiting:
        one = waiting.pop()
        if one.name in seen:
            continue
        seen.add(one.name)
        yield one
        waiting += [tensor.op for tensor in one.inputs]
        waiting += one.control_inputs


def _add_called(one: Any, found: Tally) -> None:
    """Count in the functions that an operation calls; one that may be skipped cannot be counted."""
    before = found.macs
    for attribute in one.node_def.attr.values():
        names = [attribute.func.name, *(func.name for func in attribute.list.func)]
        for name in filter(None, names):
            _add(one.graph._get_function(name).graph, found)  # no public way leads there
    if found.macs > before and one.type in BRANCHES:
        raise Uncounted("TensorFlow decides while it runs what '{}' multiplies".format(one.name))


def _forward(one: Any) -> int:
    if _is_constant(one.inputs[1].op):
        return 0  # nothing is learned: a sum over neighbours, as of LRN, written as a convolution
    return product(_shape(one.outputs[0])) * product(_shape(one.inputs[1])[:-1])


def _of_filter(one: Any) -> int:
    return product(_shape(one.inputs[2])) * product(_shape(one.outputs[0])[:-1])


def _of_input(one: Any) -> int:
    if _is_constant(one.inputs[1].op):
        return 0
    return product(_shape(one.inputs[2])) * product(_shape(one.inputs[1])[:-1])


def _multiplied(one: Any) -> int:
    left = _shape(one.inputs[0])
    name = "adj_x" if one.type.startswith("Batch") else "transpose_a"
    return product(_shape(one.outputs[0])) * left[-2 if one.get_attr(name) else -1]


def _summed(one: Any) -> int:
    """Count ``ab,bc->ac``: every letter once."""
    given = one.get_attr("equation").decode().partition("->")[0].split(",")
    sizes: Dict[str, int] = {}
    for letters, tensor in zip(given, one.inputs):
        sizes.update(zip(letters, _shape(tensor)))
    return product(list(sizes.values())) if len(given) > 1 else 0


def _is_constant(one: Any) -> bool:
    given = [tensor.op for tensor in one.inputs]
    return one.type == "Const" or (bool(given) and all(map(_is_constant, given)))


def _shape(tensor: Any) -> Sizes:
    sizes = tensor.shape.as_list()
    if None in sizes:
        raise Uncounted("the shape of TensorFlow's '{}' is not known".format(tensor.name))
    return tuple(sizes)


PRODUCTS: Dict[str, Callable[[Any], int]] = {
    "Conv2D": _forward,
    "Conv2DBackpropFilter": _of_filter,
    "Conv2DBackpropInput": _of_input,
    "Conv3D": _forward,
    "Conv3DBackpropFilterV2": _of_filter,
    "Conv3DBackpropInputV2": _of_input,
    "MatMul": _multiplied,
    "BatchMatMul": _multiplied,
    "BatchMatMulV2": _multiplied,
    "Einsum": _summed,
}
