"""Read tar shards: the header before a member is read and checked with its data."""

from __future__ import annotations

from harness.worker.input.dataset import Dataset
from harness.worker.input.shards import Shards

_BLOCK = 512
_SIZE = slice(124, 136)
_CHECKSUM = slice(148, 156)


class Tar:
    """Members of tar files."""

    def __init__(self, dataset: Dataset) -> None:
        self._shards = Shards(dataset)

    def read(self, sample: int, into: memoryview) -> int:
        """Read one member."""
        place = self._shards.place(sample)
        head = bytearray(_BLOCK)
        self._shards.read(place, head, into)
        said = int(head[_CHECKSUM].rstrip(b"\0 "), 8)
        if (
            sum(head) - sum(head[_CHECKSUM]) + 8 * 32 != said
            or int(head[_SIZE][:-1], 8) != place.length
        ):
            raise ValueError("{}: a damaged member; `bakeoff data check`".format(place.path))
        return place.length


def open(dataset: Dataset) -> Tar:  # noqa: A001 - the contract's name
    """Open a set."""
    return Tar(dataset)
