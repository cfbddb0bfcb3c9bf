"""Read an LMDB of Caffe's messages: a picture's bytes out of each."""

from __future__ import annotations

from harness.worker.input.datum import picture
from harness.worker.readers.lmdb import Lmdb


class Datum(Lmdb):
    """The same map; of a value only the picture is the sample."""

    def taken(self, value: memoryview, into: memoryview) -> int:
        """Copy what the message holds as data."""
        data = picture(value)
        into[: len(data)] = data
        return len(data)


open = Datum  # noqa: A001 - the contract's name
