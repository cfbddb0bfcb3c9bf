"""Apply Caffe's own rules to a net: the shape of every blob, and what is learned.

It reads the prototxt that Caffe will read, not the network that it was written from, so that a
mistake of the lowering shows before anything is timed. The rules are those of BVLC 1.0
(``src/caffe/layers/*_layer.cpp``, Reshape); a shape has the batch first.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Tuple

from harness.worker.adapters.caffe.prototxt import Message, every, one
from harness.worker.network.rule import product

Shape = Tuple[int, ...]


class Blobs(NamedTuple):
    """What a net holds."""

    tops: Dict[Tuple[str, str], Shape]
    """Shape of every top by the names of layer and top."""
    learned: int
    """Numbers that the solver changes: parameters whose learning rate is not zero."""
    parameters: Dict[str, List[Shape]]
    """Shapes of what each layer holds, by its name."""


def infer(net: Message, stored: Shape = ()) -> Blobs:
    """Walk a net as Caffe sets it up; ``stored`` is the shape of what a database holds first."""
    shapes: Dict[str, Shape] = {}
    tops: Dict[Tuple[str, str], Shape] = {}
    held: Dict[str, List[Shape]] = {}
    learned = 0
    for layer in every(net, "layer"):
        bottoms = [shapes[name] for name in every(layer, "bottom")]
        made, parameters = _set_up(layer, bottoms, stored)
        for name, shape in zip(every(layer, "top"), made):
            shapes[name] = tops[one(layer, "name"), name] = shape
        held[one(layer, "name")] = parameters
        rates = [one(param, "lr_mult", 1) for param in every(layer, "param")]
        for index, shape in enumerate(parameters):
            if index >= len(rates) or rates[index]:
                learned += product(shape)
    return Blobs(tops, learned, held)


def pooled(size: int, kernel: int, stride: int, pad: int) -> int:
    """Count a pool's windows: rounded up, but with pads none starts behind the input."""
    count = -(-(size + 2 * pad - kernel) // stride) + 1
    return count - 1 if pad and (count - 1) * stride >= size + pad else count


def convolved(size: int, kernel: int, stride: int, pad: int) -> int:
    """Count a convolution's windows: rounded down."""
    return (size + 2 * pad - kernel) // stride + 1


def _set_up(layer: Message, bottoms: List[Shape], stored: Shape) -> Tuple[List[Shape], List[Shape]]:
    """Give the shapes of a layer's tops and of its parameters."""
    kind = one(layer, "type")
    if kind in ("DummyData", "Input"):
        own = one(layer, "input_param" if kind == "Input" else "dummy_data_param")
        shapes = every(own, "shape")
        return [tuple(every(shape, "dim")) for shape in shapes], []
    if kind == "Data":
        batch = one(one(layer, "data_param"), "batch_size")
        return [(batch, *stored), (batch,)], []
    x = bottoms[0]
    if kind == "Convolution":
        own = one(layer, "convolution_param")
        outputs, groups = one(own, "num_output"), one(own, "group", 1)
        kernels, strides, pads = (_pair(own, "kernel"), _pair(own, "stride"), _pair(own, "pad"))
        spatial = tuple(map(convolved, x[2:], kernels, strides, pads))
        weight = (outputs, x[1] // groups, *kernels)
        return [(x[0], outputs, *spatial)], _with_bias(own, weight)
    if kind == "Pooling":
        own = one(layer, "pooling_param")
        if one(own, "global_pooling"):
            return [(*x[:2], 1, 1)], []
        kernels, strides, pads = (_pair(own, "kernel"), _pair(own, "stride"), _pair(own, "pad"))
        return [(*x[:2], *map(pooled, x[2:], kernels, strides, pads))], []
    if kind == "InnerProduct":
        own = one(layer, "inner_product_param")
        outputs = one(own, "num_output")
        return [(x[0], outputs)], _with_bias(own, (outputs, product(x[1:])))
    if kind == "BatchNorm":
        return [x], [x[1:2], x[1:2], (1,)]
    if kind == "Scale":
        return [x], [x[1:2]] * (2 if one(one(layer, "scale_param"), "bias_term") else 1)
    if kind == "Crop":
        axis = one(one(layer, "crop_param"), "axis", 2)
        return [(*x[:axis], *bottoms[1][axis:])], []
    if kind == "Flatten":
        return [(x[0], product(x[1:]))], []
    if kind in ("SoftmaxWithLoss", "EuclideanLoss"):
        return [()], []
    if kind in ("ReLU", "LRN", "Dropout", "TanH", "Power", "Eltwise"):
        return [x], []
    raise ValueError("no rule for Caffe's layer {}".format(kind))


def _with_bias(own: Message, weight: Shape) -> List[Shape]:
    return [weight, weight[:1]] if one(own, "bias_term", True) else [weight]


def _pair(own: Message, what: str) -> Tuple[int, int]:
    """Read a size for height and width: one number for both, or one each."""
    both = one(own, "kernel_size" if what == "kernel" else what, 0 if what == "pad" else 1)
    return one(own, what + "_h", both), one(own, what + "_w", both)
