"""Hold the numbers that a network is fed against those that the files hold, read once more.

A plain read of each sample's stretch, a cast and a division by the standard library alone: no
loader, and no framework's own arithmetic, has a part in it. Encoded pictures are left to the gate.
"""

from __future__ import annotations

import sys
from array import array
from typing import Any, Optional, Sequence

from harness.worker.gate.subject import stride
from harness.worker.input.dataset import Dataset

_KINDS = {"|u1": "B", "<u2": "H", "<i2": "h", "<f4": "f"}
_SAMPLES = 16
"""The most that are looked at of a batch."""
_ITEMS = 4096
"""The most that are looked at of a sample: every n-th item."""
_ALLOWED = 2.0**-8
"""Of the largest number: a batch may be rounded to bf16. Tokens are not."""


def differs(dataset: Dataset, samples: Sequence[int], inputs: memoryview) -> Optional[str]:
    """Say which sample of a batch has other numbers than the files, and how far they are off.

    ``inputs`` are the batch's numbers as the network receives them, channels first. None where
    nothing differs, and where samples are no plain stretches of numbers.
    """
    kind = _KINDS.get(str(dataset.manifest.get("dtype")))
    if kind is None or dataset.shape is None or not dataset.has_index:
        return None
    each = len(inputs) // len(samples)
    step = stride(each, _ITEMS)
    for place, sample in enumerate(samples[:_SAMPLES]):
        stored = _read(dataset, sample, kind)
        if dataset.is_text:
            stored = stored[:-1]
        if len(stored) != each:
            return "what was fed has {} numbers a sample, and the files hold {}".format(
                each, len(stored)
            )
        scale = float(dataset.manifest["scale"])
        wanted = [one / scale for one in stored[::step]]
        fed = inputs[place * each : (place + 1) * each : step]
        allowed = 0.0 if dataset.is_text else _ALLOWED * max(map(abs, wanted))
        apart = (abs(one - other) for one, other in zip(fed, wanted))
        wrong = [off for off in apart if not off <= allowed]  # what is no number too
        if wrong:
            return (
                "what was fed is not what the files hold: sample {} is {:.1e} off; "
                "`bakeoff verify` examines what is wrong".format(sample, max(wrong))
            )
    return None


def targets(dataset: Dataset, samples: Sequence[int]) -> Sequence[float]:
    """Give the targets of samples, one after the other; of texts, the tokens behind their own."""
    if dataset.is_text:
        return [token for one in samples for token in _read(dataset, one, "H")[1:]]
    length = dataset.manifest["target_length"] or 1
    every = dataset.targets()
    return [every[length * one + at] for one in samples for at in range(length)]


def _read(dataset: Dataset, sample: int, kind: str) -> Any:
    stretch = dataset.stretch(sample)
    numbers = array(kind)
    with open(stretch.path, "rb") as file:
        file.seek(stretch.offset)
        numbers.frombytes(file.read(stretch.length))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
