"""The network vocabulary: the layers a training workload may state, and no framework.

Every network here treats its spatial dimensions alike, so a kernel and a stride are one
integer each, and a pad is a pair (before, after), used for each of them. What frameworks silently
differ in is pinned by the words themselves:

- pads are integers; a max-pool's pad value is minus infinity; pooling rounds down unless ``ceil``,
- batch norm: ``running = (1 - momentum) * running + momentum * batch``, with the running variance
  Bessel-corrected (the batch's own normalisation is not),
- LRN across channels: ``x / (k + alpha * sum of squares over size channels) ** beta``; alpha is not
  divided by the size,
- ``Flatten`` orders channels first, then the spatial dimensions,
- a convolution does not flip its kernel, and its bias is per output channel.

The words of sequences, the other kind of sample, stand in ``sequence_layers.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple, Union

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


@dataclass(frozen=True)
class Conv:
    """Convolve with ``channels`` kernels of ``kernel`` cells per spatial dimension."""

    name: str
    channels: int
    kernel: int
    stride: int = 1
    pad: Tuple[int, int] = (0, 0)
    groups: int = 1
    bias: bool = True


@dataclass(frozen=True)
class Dense:
    """Multiply a flat sample, or each position of a sequence, by a matrix with so many outputs."""

    name: str
    features: int
    bias: bool = True
    deviation: float = 0.01
    """Of the normal distribution that its weight starts from."""


@dataclass(frozen=True)
class BatchNorm:
    """Normalise each channel over the batch and all positions, then scale and shift."""

    name: str
    epsilon: float = 1e-5
    momentum: float = 0.1


@dataclass(frozen=True)
class ReLU:
    """max(x, 0)."""

    name: str


@dataclass(frozen=True)
class LeakyReLU:
    """x where positive, else slope * x."""

    name: str
    slope: float


@dataclass(frozen=True)
class Tanh:
    """tanh(x)."""

    name: str


@dataclass(frozen=True)
class Scale:
    """Multiply by a constant."""

    name: str
    factor: float


@dataclass(frozen=True)
class LRN:
    """Local response normalisation across channels."""

    name: str
    size: int
    alpha: float
    beta: float
    k: float


@dataclass(frozen=True)
class MaxPool:
    """The largest value of each window.

    With ``ceil`` a last window may hang over the end, if it starts before the pad after the input.
    """

    name: str
    kernel: int
    stride: int
    pad: Tuple[int, int] = (0, 0)
    ceil: bool = False


@dataclass(frozen=True)
class AveragePool:
    """The mean of each window; never padded."""

    name: str
    kernel: int
    stride: int


@dataclass(frozen=True)
class GlobalAverage:
    """The mean of each channel over all positions; the result is flat."""

    name: str


@dataclass(frozen=True)
class Flatten:
    """Make a sample flat, channels first."""

    name: str


@dataclass(frozen=True)
class Dropout:
    """Zero with probability ``rate`` and scale the rest by 1 / (1 - rate)."""

    name: str
    rate: float


@dataclass(frozen=True)
class Residual:
    """Add what ``body`` and ``shortcut`` make of the same input; an empty shortcut is the input."""

    name: str
    body: Tuple["Layer", ...]
    shortcut: Tuple["Layer", ...] = ()


@dataclass(frozen=True)
class Product:
    """Multiply, item by item, what ``body`` and ``gate`` make of the same input."""

    name: str
    body: Tuple["Layer", ...]
    gate: Tuple["Layer", ...]


@dataclass(frozen=True)
class Heads:
    """Give what two rows of layers make of one sequence: numbers at positions, and of the sample.

    It comes last. Its sample is flat, the positions' numbers first; a framework keeps two outputs.
    """

    name: str
    positions: Tuple["Layer", ...]
    sample: Tuple["Layer", ...]


Layer = Union[
    Conv,
    Dense,
    BatchNorm,
    ReLU,
    LeakyReLU,
    Tanh,
    Scale,
    LRN,
    MaxPool,
    AveragePool,
    GlobalAverage,
    Flatten,
    Dropout,
    Residual,
    Product,
    Heads,
    Embedding,
    Segments,
    Positions,
    ClassToken,
    ToSequence,
    LayerNorm,
    RMSNorm,
    Attention,
    GELU,
    SiLU,
    Select,
    Gather,
    TiedDense,
]


@dataclass(frozen=True)
class Network:
    """A sample's shape (channels first; of tokens, how many) and the layers it runs through."""

    input: Tuple[int, ...]
    layers: Tuple[Layer, ...]
