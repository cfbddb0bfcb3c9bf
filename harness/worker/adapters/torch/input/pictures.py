"""Decode pictures for torch as torchvision's ImageFolder does: with Pillow, in workers.

A picture becomes RGB and as large as it is asked for (bilinear, not cropped). It stays channels
last, as it was decoded: a batch of such pictures is a view of what channels-last networks take.
"""

from __future__ import annotations

import io
from typing import Any, Sequence, Tuple

import numpy
import torch

from harness.worker.contracts import Unsupported

SIDE = 64
"""Where nothing is trained, pictures are resized to so many pixels in both directions, as in
TensorFlow's loader (Chien et al. 2018)."""
COLOURS = 3
MIDDLE = 127.5
"""Decoded pictures, 0 to 255, are brought to -1 to 1."""


class Decoder:
    """Makes the bytes of a picture a tensor of height, width and colours."""

    def __init__(self, size: Sequence[int]) -> None:
        height, width = size
        self._size = (width, height)
        _pillow()

    def __call__(self, stored: Any) -> torch.Tensor:
        """Decode and resize one picture."""
        image = _pillow()
        try:
            with image.open(io.BytesIO(stored)) as picture:
                sized = picture.convert("RGB").resize(self._size, image.Resampling.BILINEAR)
        except (OSError, SyntaxError, image.DecompressionBombError) as problem:
            raise ValueError(str(problem)) from None
        return torch.from_numpy(numpy.array(sized))


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise Unsupported(
            "torch decodes pictures with Pillow, which its environment lacks: "
            "`bakeoff env create 'torch[pillow]'`"
        ) from None
    return Image


def batch_of(stored: torch.Tensor) -> torch.Tensor:
    """Make decoded pictures what a network takes: channels first, -1 to 1."""
    return stored.permute(0, 3, 1, 2).to(torch.float32).div_(MIDDLE).sub_(1.0)


def fits(shape: Tuple[int, ...]) -> bool:
    """Tell whether a network takes pictures."""
    return len(shape) == 3 and shape[0] == COLOURS
