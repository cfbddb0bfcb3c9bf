"""Read TFRecord shards with the standard library: record and message parsed.

The checksum of a record's length is checked, that of its data is not: without TensorFlow it would
cost more than all the rest. The number that the record holds is held against the one asked for. Of
a user's own records, which hold any message, the whole message is the sample.
"""

from __future__ import annotations

from harness.worker.input import records
from harness.worker.input.dataset import Dataset
from harness.worker.input.shards import Shards


class TfRecord:
    """Records of TFRecord files."""

    def __init__(self, dataset: Dataset) -> None:
        self._shards = Shards(dataset)
        self._is_own = dataset.is_own

    def read(self, sample: int, into: memoryview) -> int:
        """Read one record and parse it."""
        place = self._shards.place(sample)
        before = b"" if self._is_own else records.before(sample, place.length)
        head = bytearray(records.HEAD + len(before))
        self._shards.read(place, head, into)
        said = records.data_length(bytes(head[: records.HEAD]))
        if said != len(before) + place.length or head[records.HEAD :] != before:
            raise ValueError("{}: a damaged record; `bakeoff data check`".format(place.path))
        return place.length


def open(dataset: Dataset) -> TfRecord:  # noqa: A001 - the contract's name
    """Open a set."""
    return TfRecord(dataset)
