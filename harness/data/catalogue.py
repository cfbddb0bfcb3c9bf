"""List what samples can be: a catalogue that plans read without making any."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from harness.worker.input.dataset import TOKEN_BYTES, UINT16

FORMATS = ("raw", "npy", "npz", "tar", "tfrecord", "hdf5", "lmdb", "datum", "leveldb", UINT16)
ARRAYS_ONLY = frozenset({"npy", "npz", "hdf5"})
"""Formats that hold arrays of one shape."""
MESSAGES = frozenset({"datum", "leveldb"})
"""Formats of Caffe's messages, each a picture and its class; the rest hold any bytes."""
_TEXT = "text"


@dataclass(frozen=True)
class Content:
    """What the samples of a set are."""

    name: str
    title: str
    kind: str
    """Which maker makes it."""
    together: int
    """Samples in one file of a format that holds arrays or bare files."""
    shard: int
    """Samples in one file of a format made to hold many."""
    median_bytes: int
    dtype: str | None = None
    """Of an array; None: a sample is an encoded picture."""
    shape: tuple[int, ...] = ()
    """Channels first."""
    scale: float = 1.0
    """What a network divides the stored numbers by."""
    classes: int = 0
    """Of tokens: how many different ones there are."""
    target_length: int = 0
    """Numbers in a target; 0: it is a class."""

    @property
    def most_bytes(self) -> int:
        """Bound a sample's size: of a million pictures none is six times the median."""
        return self.median_bytes if self.is_array else 6 * self.median_bytes

    def fits(self, form: str) -> str | None:
        """Say why a format cannot hold such samples; None if it can."""
        if self.is_text:
            return None if form == UINT16 else f"{self.name} are kept as {UINT16} alone, not {form}"
        if form == UINT16:
            return f"{UINT16} holds tokens, and {self.name} are none"
        if form in ARRAYS_ONLY and not self.is_array:
            return f"{form} holds arrays, and {self.name} are encoded pictures"
        if form in MESSAGES and not self._is_picture:
            return f"{form} holds pictures with a class, and {self.name} are none"
        return None

    @property
    def _is_picture(self) -> bool:
        """Whether a sample is an encoded picture, or one of a byte a channel and point."""
        is_plain = self.dtype == "|u1" and len(self.shape) == 3
        return self.classes > 0 and (is_plain or not self.is_array)

    @property
    def is_text(self) -> bool:
        """Whether a sample is one token of a text that never ends."""
        return self.kind == _TEXT

    @property
    def is_array(self) -> bool:
        """Whether a sample is an array of fixed shape."""
        return self.dtype is not None


def _volumes(name: str, title: str, channels: int, edge: int, shard: int) -> Content:
    shape = (channels, edge, edge, edge)
    size = 2 * math.prod(shape)
    return Content(
        name, title, "volume", 1, shard, size, "<u2", shape, scale=256.0, target_length=4
    )


def _pictures(name: str, title: str, median_bytes: int, classes: int) -> Content:
    return Content(name, title, "picture", 1, 256, median_bytes, classes=classes)


def _tokens(name: str, title: str, vocabulary: int) -> Content:
    return Content(name, title, _TEXT, 1, 1, TOKEN_BYTES, "<u2", classes=vocabulary)


CONTENTS: Mapping[str, Content] = {
    one.name: one
    for one in (
        _pictures("pictures", "JPEG pictures, median 112 KB", 112_000, 1000),
        _pictures("small-pictures", "JPEG pictures, median 12 KB", 12_000, 102),
        Content(
            "tiny-pictures",
            "pictures of 32 × 32, not encoded",
            "tiny-picture",
            64,
            1024,
            3 * 32 * 32,
            "|u1",
            (3, 32, 32),
            scale=128.0,
            classes=10,
        ),
        _volumes("volumes", "volumes of 4 × 128³, as CosmoFlow's", 4, 128, 8),
        _volumes("deep-volumes", "volumes of 12 × 128³, as Lee et al. read", 12, 128, 4),
        Content(
            "traces",
            "traces of 4 × 1600, as the neuron inverter's",
            "trace",
            64,
            2048,
            2 * 4 * 1600,
            "<i2",
            (4, 1600),
            scale=4000.0,
            target_length=15,
        ),
        _tokens("tokens", "tokens by Zipf's law, of 50,257 different ones, as GPT-2's", 50_257),
        _tokens("tiny-tokens", "tokens by Zipf's law, of 512 different ones", 512),
    )
}


def usual_format(content: str) -> str:
    """Give the format that files have where nobody states one."""
    return UINT16 if content in CONTENTS and CONTENTS[content].is_text else "raw"
