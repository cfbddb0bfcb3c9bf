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

A sequence is the other kind of sample: one vector of features at each position, (length, features).
Its words begin with ``Embedding``, which makes one of tokens, or ``ToSequence``, which makes one of
an image. Pinned there:

- a ``Dense`` multiplies each position's vector by one matrix,
- both norms take each position alone, and divide by the root of its variance or mean square plus
  epsilon,
- attention divides its scores by the root of a head's size; a position that a causal mask hides is
  minus infinity before the softmax, which is taken in at least float32; query head n reads
  key/value head n // (heads / kv_heads).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple, Union


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
class Embedding:
    """Give each token its row of a table; it comes first, and its samples are class numbers."""

    name: str
    vocabulary: int
    features: int
    deviation: float = 0.02


@dataclass(frozen=True)
class Positions:
    """Add a learned vector for each position; ``length`` of them are held."""

    name: str
    length: int
    deviation: float = 0.02


@dataclass(frozen=True)
class ClassToken:
    """Put one learned vector before a sequence; it is held as a table of one row."""

    name: str
    deviation: float = 0.02


@dataclass(frozen=True)
class ToSequence:
    """Make a sequence of an image's positions, row by row, whose features are its channels."""

    name: str


@dataclass(frozen=True)
class LayerNorm:
    """Bring each position to mean 0 and variance 1 (not Bessel-corrected); scale, and shift."""

    name: str
    epsilon: float = 1e-5
    bias: bool = True


@dataclass(frozen=True)
class RMSNorm:
    """Divide each position by the root of its mean square; scale."""

    name: str
    epsilon: float = 1e-5


@dataclass(frozen=True)
class Rotary:
    """Turn pairs of a query's and a key's items by an angle that grows with the position.

    Pair i of a head of size e turns by ``position * theta ** (-2 i / e)``, counted from 0. With
    ``interleaved`` it is items 2 i and 2 i + 1, as Llama's authors write it; else items i and
    i + e / 2, as GPT-NeoX does.
    """

    theta: float
    interleaved: bool


@dataclass(frozen=True)
class Attention:
    """Mix positions: softmax of scaled products of queries and keys, times values.

    Each position's features are its queries (``heads`` of ``head`` numbers), then its keys, then
    its values (``kv_heads`` of them each). What projects in and out are ``Dense`` layers.
    """

    name: str
    heads: int
    kv_heads: int
    head: int
    causal: bool
    rotary: Optional[Rotary] = None


@dataclass(frozen=True)
class GELU:
    """x times the normal distribution at x; ``tanh``: by Hendrycks' approximation with a tanh."""

    name: str
    tanh: bool


@dataclass(frozen=True)
class SiLU:
    """x / (1 + exp(-x))."""

    name: str


@dataclass(frozen=True)
class Select:
    """Take one position of a sequence; the result is flat."""

    name: str
    position: int


@dataclass(frozen=True)
class TiedDense:
    """Multiply each position by the table of an ``Embedding`` at the path ``to``, which both train.

    ``features`` is that table's vocabulary.
    """

    name: str
    to: str
    features: int
    bias: bool = False


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
    Embedding,
    Positions,
    ClassToken,
    ToSequence,
    LayerNorm,
    RMSNorm,
    Attention,
    GELU,
    SiLU,
    Select,
    TiedDense,
]

SEQUENCE_WORDS = (
    Embedding,
    Positions,
    ClassToken,
    ToSequence,
    LayerNorm,
    RMSNorm,
    Attention,
    GELU,
    SiLU,
    Select,
    TiedDense,
)
"""Words that only networks of sequences have, and that an adapter may lack together."""


@dataclass(frozen=True)
class Network:
    """A sample's shape (channels first; of tokens, how many) and the layers it runs through."""

    input: Tuple[int, ...]
    layers: Tuple[Layer, ...]
