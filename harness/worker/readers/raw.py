"""Read sets of raw files: a sample is a whole file, and its bytes are the sample."""

from __future__ import annotations

import os

from harness.worker.input.dataset import Dataset


class Raw:
    """Files of one sample each."""

    def __init__(self, dataset: Dataset) -> None:
        self._paths = dataset.paths

    def read(self, sample: int, into: memoryview) -> int:
        """Read a whole file."""
        descriptor = os.open(self._paths[sample], os.O_RDONLY)
        try:
            length = os.fstat(descriptor).st_size
            done = 0
            while done < length:
                more = os.preadv(descriptor, [into[done:length]], done)
                if not more:
                    raise EOFError("{} became shorter".format(self._paths[sample]))
                done += more
            return length
        finally:
            os.close(descriptor)


def open(dataset: Dataset) -> Raw:  # noqa: A001 - the contract's name
    """Open a set."""
    return Raw(dataset)
