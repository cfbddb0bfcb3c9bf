"""Read a sample out of a shard together with what stands before it there."""

from __future__ import annotations

import os
from typing import Dict

from harness.worker.input.dataset import Dataset, Stretch


class Shards:
    """Files of many samples whose places are known, as readers of such sets index them."""

    def __init__(self, dataset: Dataset) -> None:
        self.place = dataset.stretch
        """Gives a sample's file, and its offset and length there."""
        dataset.index()  # read once here, not by the first sample
        self._open: Dict[str, int] = {}

    def read(self, place: Stretch, head: bytearray, into: memoryview) -> None:
        """Fill ``head`` with what stands before a sample; its own bytes go straight to theirs."""
        path, offset, length = place
        descriptor = self._open.get(path)
        if descriptor is None:
            descriptor = self._open[path] = os.open(path, os.O_RDONLY)
        begin, whole = offset - len(head), len(head) + length
        done = os.preadv(descriptor, [head, into[:length]], begin)
        while done < whole:
            more = os.preadv(descriptor, [into[done - len(head) : length]], begin + done)
            if not more:
                raise EOFError("{} ends before its sample does; `bakeoff data check`".format(path))
            done += more
