"""Know each made sample's bytes again: by eight bytes taken as it is made.

An imprint digests the length, the first and last bytes, and one byte of about every page between
them: what is another sample, was shifted, or lacks a page has another one, and taking it costs
microseconds however large the sample is. Whether every byte is as it was is for `bakeoff data
check` to say.
"""

from __future__ import annotations

import os
from array import array
from hashlib import blake2b
from typing import Any, List, Optional, Sequence

from harness.worker.input.dataset import IMPRINTS, Dataset
from harness.worker.input.evidence.audit import WrongDelivery

_EDGE = 64
_STRIDE = 4093
"""A prime: it meets another place of each page."""


def imprint(data: memoryview) -> int:
    """Take the imprint of a sample's bytes."""
    length = len(data)
    digest = blake2b(length.to_bytes(8, "little"), digest_size=8)
    digest.update(data[:_EDGE])
    digest.update(data[max(0, length - _EDGE) :])
    digest.update(bytes(data[::_STRIDE]))
    return int.from_bytes(digest.digest(), "little")


def laid_open(data: Any) -> Optional[List[memoryview]]:
    """Give the stored bytes of each sample of a batch, however a loader holds them; None where it
    hands over none, or what was made of them.
    """
    found = []
    for one in data.numpy() if hasattr(data, "numpy") else data:
        try:
            view = memoryview(one.numpy() if hasattr(one, "numpy") else one)
        except (TypeError, ValueError):  # nothing in memory, or of a type that no buffer has: bf16
            return None
        if view.format != "B" or view.ndim != 1:
            return None
        found.append(view)
    return found or None


class Imprints:
    """What the samples of a set are to look like."""

    def __init__(self, dataset: Dataset) -> None:
        self._known: Optional[Any] = None
        path = os.path.join(dataset.folder, IMPRINTS)
        if os.path.exists(path):
            self._known = array("Q")
            with open(path, "rb") as file:
                self._known.frombytes(file.read())

    def compare(self, samples: Sequence[int], data: Any) -> int:
        """Refuse bytes that are not the sample's; give how many samples could be compared."""
        stored = None if self._known is None else laid_open(data)
        if stored is None or self._known is None:
            return 0
        if len(samples) != len(stored):
            raise WrongDelivery(
                "the reader delivered the bytes of {} samples for {}".format(
                    len(stored), len(samples)
                )
            )
        wrong: List[int] = [
            sample for sample, one in zip(samples, stored) if imprint(one) != self._known[sample]
        ]
        if wrong:
            raise WrongDelivery(
                "the reader delivered other bytes than those of sample {} ({} of {} in the batch): "
                "`bakeoff data check` tells whether the files are at fault".format(
                    wrong[0], len(wrong), len(samples)
                )
            )
        return len(samples)
