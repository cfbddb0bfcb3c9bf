"""The words for sequences: layers that a network may have beside those of ``layers.py``.

A sequence is a sample that is one vector of features at each position, (length, features).
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
from typing import Optional, Tuple


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
class Segments:
    """Add a learned vector to each position of a segment; ``count`` equal ones make a sequence."""

    name: str
    count: int
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
    form: Optional[str] = None
    """"fused": by the framework's own kernel; "plain": by two products and a softmax between them;
    None: as the adapter does by itself. What it computes is the same."""


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
class Gather:
    """Take some positions, the same of every sample; the result is a sequence of them."""

    name: str
    positions: Tuple[int, ...]


@dataclass(frozen=True)
class TiedDense:
    """Multiply each position by the table of an ``Embedding`` at the path ``to``, which both train.

    ``features`` is that table's vocabulary.
    """

    name: str
    to: str
    features: int
    bias: bool = False


SEQUENCE_WORDS = (
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
)
"""Words that only networks of sequences have, and that an adapter may lack together."""
