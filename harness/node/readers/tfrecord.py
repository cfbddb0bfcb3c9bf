"""This file reads TFRecord shards with the standard library: record and message parsed.

The checksum of a record's length is checked, that of its data is not: without TensorFlow it would
cost more than all the rest. The number that the record holds is held against the one asked for.
"""

from __future__ import annotations

import os
from typing import Dict

from harness.node.input import records
from harness.node.input.dataset import Dataset


class TfRecord:
    """Shards whose records' places are known."""

    def __init__(self, dataset: Dataset) -> None:
        self._stretch = dataset.stretch
        dataset.index()
        self._open: Dict[str, int] = {}

    def read(self, sample: int, into: memoryview) -> int:
        """Read one record and parse it; the sample's bytes go straight to their place."""
        path, offset, length = self._stretch(sample)
        descriptor = self._open.get(path)
        if descriptor is None:
            descriptor = self._open[path] = os.open(path, os.O_RDONLY)
        before = records.before(sample, length)
        head = bytearray(records.HEAD + len(before))
        done = os.preadv(descriptor, [head, into[:length]], offset - len(head))
        while done < len(head) + length:
            rest = [into[done - len(head) : length]]
            more = os.preadv(descriptor, rest, offset - len(head) + done)
            if not more:
                raise EOFError("{} ends before its record does; `bakeoff data check`".format(path))
            done += more
        said = records.data_length(bytes(head[: records.HEAD]))
        if said != len(before) + length or head[records.HEAD :] != before:
            raise ValueError("{}: a damaged record; `bakeoff data check`".format(path))
        return length


def open(dataset: Dataset) -> TfRecord:  # noqa: A001 - the contract's name
    """Open a set."""
    return TfRecord(dataset)
