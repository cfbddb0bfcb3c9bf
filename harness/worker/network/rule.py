"""What a layer word means to whoever counts it: shapes, parameters, multiplications."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence, Tuple

from harness.worker.network.layers import Layer

Shape = Tuple[int, ...]
"""One sample's: channels first and then its spatial dimensions, flat, or a ``SequenceShape``."""


class SequenceShape(NamedTuple):
    """The shape of a sequence: a vector of features at each position."""

    length: int
    features: int


class HeadsShape(NamedTuple):
    """The shape of two outputs: features at each of some positions, and numbers of the sample."""

    length: int
    features: int
    numbers: int

    @property
    def size(self) -> int:
        """Count both, side by side."""
        return self.length * self.features + self.numbers


class ImpossibleNetwork(ValueError):
    """Say which layer cannot be, and why."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__("layer '{}': {}".format(path, why))


class Parameter(NamedTuple):
    """Numbers that a layer holds: weight, bias, gamma, beta; running mean and variance."""

    kind: str
    shape: Shape
    mean: float
    deviation: float
    """Of the normal distribution that it starts from; 0: all of it starts at the mean."""


RESULT, INPUT, DRAWN, NONE = "result", "input", "drawn", "none"
"""What a gradient needs again of the forward pass: anything that the layer computed, what entered
it alone, the numbers that it drew, or nothing."""


class Rule(NamedTuple):
    """What one layer word means to whoever counts it; no part has a default."""

    output: Callable[..., Shape]
    """From the layer, its path and its input's shape (or each branch's end) to what it gives."""
    parameters: Callable[[Any, Shape], Sequence[Parameter]]
    """What is trained."""
    statistics: Callable[[Any, Shape], Sequence[Parameter]]
    """What follows the batches without being trained."""
    macs: Callable[[Any, Shape, Shape], int]
    """From the layer and the shapes of its input and output: multiplications of a sample."""
    writes: bool
    """Whether its output is new memory, with nothing done in place."""
    branches: Callable[[Any], Sequence[Sequence[Layer]]]
    """The rows of layers inside it, which all start from its input."""
    recalled: str
    """What its gradient needs again: RESULT, INPUT, DRAWN or NONE."""


def positive(path: str, **sizes: int) -> None:
    """Refuse a size that is none."""
    for name, size in sizes.items():
        if size < 1:
            raise ImpossibleNetwork(path, "{} {} is not positive".format(name, size))


def product(numbers: Sequence[int]) -> int:
    """Multiply integers (``math.prod`` came with Python 3.8)."""
    total = 1
    for number in numbers:
        total *= number
    return total


def nothing(_layer: Layer, _shape: Shape) -> Sequence[Parameter]:
    """Hold no number."""
    return ()


def no_macs(_layer: Layer, _input: Shape, _output: Shape) -> int:
    """Multiply by nothing that counts."""
    return 0


def no_branches(_layer: Layer) -> Sequence[Sequence[Layer]]:
    """Have no layers inside."""
    return ()


def same(_layer: Layer, _path: str, shape: Shape) -> Shape:
    """Give what has the shape of what entered."""
    return shape


def bare(output: Callable[..., Shape], recalled: str) -> Rule:
    """Describe a word that holds no number of its own and multiplies by no weight."""
    return Rule(output, nothing, nothing, no_macs, True, no_branches, recalled)
