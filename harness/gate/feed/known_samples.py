"""The reference reader: what a network is to receive of each sample, by the documentation alone.

Samples are made again from their numbers (``harness/data/contents.py``), so no file, no format and
no reader has a part in it. Stored numbers are divided by their scale; pictures are decoded, resized
and brought to -1 to 1, as docs/input.md says of the loaders that decode. Texts follow each other in
the tokens, and the token behind each of theirs is what is asked for.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.data.catalogue import CONTENTS
from harness.data.contents import sample, tokens
from harness.data.sets import DataSetSpec
from harness.worker.gate.subject import stride
from harness.worker.input.dataset import texts_of

Array = npt.NDArray[Any]

MIDDLE = 127.5
"""Half of the range of a decoded picture's numbers."""
OF_STORED_NUMBERS = 1e-6
_LEVELS = {"averaging": 0.5, "between-neighbours": 2.0}
"""Of the 255 of a picture, in the root mean square: TensorFlow decodes JPEG with a faster, rougher
transform than Pillow, which the reference uses; 1.2 levels were found."""


@dataclass(frozen=True)
class KnownSamples:
    """The samples of a set, as a network of one input shape is to receive them."""

    spec: DataSetSpec
    shape: tuple[int, ...]
    """Channels first."""
    resizing: str | None = None
    """How the reader resizes pictures; None: stored numbers."""
    thin: int = 0
    """The most items that are compared of a sample; 0: all."""

    @property
    def is_text(self) -> bool:
        """Whether the samples are texts of tokens."""
        return CONTENTS[self.spec.content].is_text

    @property
    def samples(self) -> int:
        """Count the samples: of tokens, the texts of the network's length."""
        return texts_of(self.spec.samples, self.shape[0]) if self.is_text else self.spec.samples

    @property
    def tolerance(self) -> float:
        """How far a sample's numbers may be off, in the root mean square."""
        if self.resizing is None:
            return OF_STORED_NUMBERS
        return _LEVELS[self.resizing] / MIDDLE

    @property
    def step(self) -> int:
        """Every n-th item is compared: this n."""
        return stride(int(np.prod(self.shape)), self.thin)

    def input(self, number: int) -> Array:
        """Give one sample's numbers, channels first."""
        return _input(self, number)

    def thinned(self) -> Array:
        """Give what is compared of every sample, one row each."""
        return np.stack([thinned(self, self.input(one)) for one in range(self.samples)])

    def tokens(self) -> Array:
        """Give every token, where the samples are texts."""
        return _tokens(self.spec)

    def targets(self) -> Array:
        """Give every sample's target, as files hold it: a class number, or a vector; of a text what
        is compared of the tokens behind its own.
        """
        content = CONTENTS[self.spec.content]
        if self.is_text:
            behind = self.tokens()[1:]
            each = [behind[at : at + self.shape[0]] for at in _starts(self)]
            return np.stack([one[:: self.step] for one in each]).astype(np.float64)
        made = [sample(content, self.spec.seed, one).target for one in range(self.spec.samples)]
        return np.array(made, np.float32).astype(np.float64).reshape(self.spec.samples, -1)


def thinned(known: KnownSamples, values: Array) -> Array:
    """Give every n-th item, as workers write them."""
    return values.reshape(-1)[:: known.step]


def forget() -> None:
    """Give back the memory of samples that were made."""
    _input.cache_clear()
    _tokens.cache_clear()


@lru_cache(maxsize=32)
def _input(known: KnownSamples, number: int) -> Array:
    return _made(known, number).astype(np.float32)


def _made(known: KnownSamples, number: int) -> Array:
    content = CONTENTS[known.spec.content]
    if known.is_text:
        start = known.shape[0] * number
        return known.tokens()[start : start + known.shape[0]]
    data = sample(content, known.spec.seed, number).data
    if known.resizing is None:
        assert content.dtype is not None
        return np.frombuffer(data, content.dtype).reshape(content.shape) / content.scale
    height, width = known.shape[1:]
    picture = RESIZED[known.resizing](data, (height, width))
    return np.moveaxis(picture, -1, 0) / MIDDLE - 1.0


def _starts(known: KnownSamples) -> range:
    """Give the token that each text begins with."""
    return range(0, known.samples * known.shape[0], known.shape[0])


@lru_cache(maxsize=2)
def _tokens(spec: DataSetSpec) -> Array:
    return np.concatenate(list(tokens(CONTENTS[spec.content], spec.seed, spec.samples)))


def _averaged(data: bytes, size: tuple[int, int]) -> Array:
    """Resize as Pillow does, which averages over what it shrinks."""
    from PIL import Image  # only pictures need it

    with Image.open(io.BytesIO(data)) as picture:
        sized = picture.convert("RGB").resize(size[::-1], Image.Resampling.BILINEAR)
    return np.asarray(sized, np.float64)


def _between_neighbours(data: bytes, size: tuple[int, int]) -> Array:
    """Resize as TensorFlow does: between the two nearest pixels, whatever lies farther."""
    from PIL import Image  # only pictures need it

    with Image.open(io.BytesIO(data)) as picture:
        values = np.asarray(picture.convert("RGB"), np.float64)
    for axis, wanted in enumerate(size):
        there = values.shape[axis]
        at = (np.arange(wanted) + 0.5) * there / wanted - 0.5
        low = np.floor(at)
        share = (at - low).reshape([-1 if one == axis else 1 for one in range(3)])
        first, second = (_rows(values, low + one, axis) for one in (0, 1))
        values = first * (1 - share) + second * share
    return values


def _rows(values: Array, at: Array, axis: int) -> Array:
    """Take rows, of which those beyond an edge are the edge's."""
    return np.take(values, np.clip(at, 0, values.shape[axis] - 1).astype(int), axis)


RESIZED: Mapping[str, Callable[[bytes, tuple[int, int]], Array]] = {
    "averaging": _averaged,
    "between-neighbours": _between_neighbours,
}
"""By the word that the framework's file has for its reader."""
