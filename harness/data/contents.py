"""Make samples out of numbers: pictures, volumes, traces, the target of each, and tokens.

Every sample has a stream of its own, counted by Philox under a key that digests seed, content and
number: any sample can be made alone, on any machine, in any order. Classes, tiny pictures and
volumes follow from raw 64-bit draws by integers, so they are the same everywhere. Traces are sines
and exponentials rounded to integers: another numpy or processor may round one of them to its
neighbour. The bytes of a JPEG are the same with the same libjpeg; versions stand in the manifest.
Tokens are drawn many at once: each block of them has a stream of its own.

Targets follow from what is drawn, so that networks can learn them.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from harness.data.catalogue import Content
from harness.worker.network.tokens import weights


@dataclass(frozen=True)
class Sample:
    """One sample: its bytes as they are stored in a file, and its target."""

    data: bytes
    target: int | tuple[float, ...]


Places = list[tuple[int, int]] | None
"""Offset and length of each sample in a file, where each is a plain stretch of it; else None."""


class Draws:
    """The raw draws of one sample."""

    def __init__(self, content: str, seed: int, sample: int) -> None:
        digest = hashlib.sha256(f"{seed}/{content}/{sample}".encode()).digest()
        self._bits = np.random.Philox(key=int.from_bytes(digest[:16], "little"))

    def bytes(self, count: int) -> npt.NDArray[np.uint8]:
        """Draw so many bytes."""
        return self._bits.random_raw(-(-count // 8)).astype("<u8").view(np.uint8)[:count]

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Draw whole 64-bit numbers."""
        return np.asarray(self._bits.random_raw(count))

    def uniform(self, count: int = 1) -> list[float]:
        """Draw numbers strictly between 0 and 1."""
        return [(int(raw >> 11) + 0.5) / 2**53 for raw in self._bits.random_raw(count)]


_SPREAD = 0.35
"""Of the logarithm of a picture's size."""
_BITS_PER_PIXEL = 1.9
_LEAST_SIDE = 48


def _picture(content: Content, draws: Draws) -> Sample:
    """Paint a smooth picture with some texture, as large as its file is to be."""
    chance, kind, form = draws.uniform(3)
    wanted = content.median_bytes * math.exp(_SPREAD * NormalDist().inv_cdf(chance))
    target = int(kind * content.classes)
    seeds = [draws.bytes(3 * cells * cells) for cells in (3, 12, 48)]
    bits = _BITS_PER_PIXEL
    data = b""
    for _ in range(2):  # the second size is right: the first tells what a pixel of this one costs
        area = max(_LEAST_SIDE**2, 8 * wanted / bits)
        height = max(_LEAST_SIDE, round(math.sqrt(area * (0.6 + 0.3 * form))))
        width = max(_LEAST_SIDE, round(area / height))
        data = _painted(seeds, target, content.classes, width, height)
        bits = 8 * len(data) / (width * height)
    return Sample(data, target)


def _painted(
    seeds: list[npt.NDArray[np.uint8]], target: int, classes: int, width: int, height: int
) -> bytes:
    from PIL import Image

    mixed = np.zeros((height, width, 3), np.int32)
    for seed, cells, weight in zip(seeds, (3, 12, 48), (4, 2, 1), strict=True):
        coarse = Image.fromarray(seed.reshape(cells, cells, 3))
        mixed += weight * np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC))
    texture = (np.arange(height)[:, None] * 37 + np.arange(width)[None, :] * 57) % 29
    mixed += 2 * texture[:, :, None].astype(np.int32)
    tint = 40 * target // max(1, classes - 1)  # what a network can learn a class from
    mixed[:, :, 0] += 7 * tint
    picture = np.clip(mixed // 8, 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=90)
    return file.getvalue()


def _tiny_picture(content: Content, draws: Draws) -> Sample:
    target = int(draws.uniform()[0] * content.classes)
    noise = draws.bytes(math.prod(content.shape)).reshape(content.shape)
    picture = noise // 2
    picture[target % 3] += 8 * (target // 3) + 16
    return Sample(picture.tobytes(), target)


def _volume(content: Content, draws: Draws) -> Sample:
    """Make clumps of mass: four numbers say how much, how clumped, how fine, how bright."""
    targets = tuple(round(2 * one - 1, 6) for one in draws.uniform(content.target_length))
    channels, edge = content.shape[0], content.shape[1]
    coarse = draws.bytes(channels * 8**3).reshape(channels, 8, 8, 8).astype(np.uint16)
    level = [int(16 * (1.1 + one)) for one in targets]
    clumped = (coarse * level[1] // 32) + (coarse >> (4 + level[2] // 12)) * 2 + level[0]
    for axis in (1, 2, 3):
        clumped = np.repeat(clumped, edge // 8, axis)
    grain = draws.bytes(clumped.size).reshape(clumped.shape)
    mass = clumped + (grain & 7) * (grain >> 5) * (level[3] // 8 + 1)
    return Sample(mass.astype("<u2").tobytes(), targets)


def _trace(content: Content, draws: Draws) -> Sample:
    """Let damped swings answer a pulse in each channel, as a neuron's compartments do."""
    targets = tuple(round(2 * one - 1, 6) for one in draws.uniform(content.target_length))
    channels, length = content.shape
    values = np.array(targets)
    time = np.arange(length) / length
    swings = np.zeros((channels, length))
    for number in range(5):
        strength, speed, fading = values[3 * number : 3 * number + 3]
        swing = np.sin(2 * np.pi * (4 + 5 * number + 2 * speed) * time)
        swing *= (1 + 0.8 * strength) * np.exp(-(2 + 1.5 * fading) * time)
        swings += swing * (1 + 0.25 * np.arange(channels)[:, None] * (number % 2))
    noise = draws.bytes(channels * length).reshape(channels, length).astype(np.int16) - 128
    stored = np.round(swings * 2000).astype(np.int16) + noise
    return Sample(stored.astype("<i2").tobytes(), targets)


_MAKERS: dict[str, Callable[[Content, Draws], Sample]] = {
    "picture": _picture,
    "tiny-picture": _tiny_picture,
    "volume": _volume,
    "trace": _trace,
}


_BLOCK = 1 << 20
"""Tokens that are drawn at once."""


def tokens(content: Content, seed: int, count: int) -> Iterator[npt.NDArray[np.uint16]]:
    """Draw the first tokens of a text without end, as frequent as Zipf's law has them."""
    assert content.is_text
    bounds = _bounds(content.classes)
    for number, first in enumerate(range(0, count, _BLOCK)):
        drawn = Draws(content.name, seed, number).words(min(_BLOCK, count - first))
        yield np.searchsorted(bounds, drawn, side="right").astype("<u2")


@cache
def _bounds(vocabulary: int) -> npt.NDArray[np.uint64]:
    """Divide the 64-bit numbers among the tokens, in whole numbers; the last one has the rest."""
    upto = weights(vocabulary)
    return np.array([int(one / upto[-1] * 2**64) for one in upto[:-1]], np.uint64)


def sample(content: Content, seed: int, number: int) -> Sample:
    """Make one sample."""
    return _MAKERS[content.kind](content, Draws(content.name, seed, number))
