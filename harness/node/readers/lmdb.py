"""This file reads an LMDB: a memory-mapped tree, its keys the numbers of samples, nine digits."""

from __future__ import annotations

import os
from typing import Any

from harness.node.contracts import Unsupported
from harness.node.input.dataset import Dataset


class Lmdb:
    """One map for all threads, a transaction for each read."""

    def __init__(self, dataset: Dataset) -> None:
        try:
            import lmdb
        except ImportError as error:
            raise Unsupported("LMDB needs lmdb in this environment: {}".format(error)) from None
        (path,) = dataset.paths
        self._map: Any = lmdb.open(
            path, subdir=os.path.isdir(path), readonly=True, lock=False, readahead=False
        )

    def read(self, sample: int, into: memoryview) -> int:
        """Copy one value out of the map."""
        with self._map.begin(buffers=True) as transaction:
            value = transaction.get(b"%09d" % sample)
            if value is None:
                raise ValueError("the LMDB holds no sample {}".format(sample))
            into[: len(value)] = value
            return len(value)


def open(dataset: Dataset) -> Lmdb:  # noqa: A001 - the contract's name
    """Open a set."""
    return Lmdb(dataset)
