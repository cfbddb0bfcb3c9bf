"""Read an LMDB: a memory-mapped tree, its keys the numbers of samples, nine digits.

A user's own has whatever keys it has; they were listed when it was adopted.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from harness.worker.contracts import Unsupported
from harness.worker.input.dataset import Dataset
from harness.worker.input.lmdb_pages import why_cut_short


class Lmdb:
    """One map for all threads, a transaction for each read."""

    def __init__(self, dataset: Dataset) -> None:
        try:
            import lmdb
        except ImportError as error:
            raise Unsupported("LMDB needs lmdb in this environment: {}".format(error)) from None
        self._library = lmdb
        (self._path,) = dataset.paths
        self._keys = dataset.keys()
        self._map: Any = None
        self._lock = threading.Lock()

    def read(self, sample: int, into: memoryview) -> int:
        """Copy one value out of the map."""
        with self._opened().begin(buffers=True) as transaction:
            value = transaction.get(self._key(sample))
            if value is None:
                raise ValueError("the LMDB holds no sample {}".format(sample))
            return self.taken(value, into)

    def taken(self, value: memoryview, into: memoryview) -> int:
        """Copy a whole value."""
        into[: len(value)] = value
        return len(value)

    def _key(self, sample: int) -> bytes:
        return b"%09d" % sample if self._keys is None else self._keys[sample]

    def _opened(self) -> Any:
        with self._lock:
            if self._map is None:
                inside = os.path.join(self._path, "data.mdb")
                file = inside if os.path.isdir(self._path) else self._path
                why = why_cut_short(file)
                if why is not None:
                    raise ValueError("{} is no LMDB that can be read: {}".format(file, why))
                self._map = self._library.open(
                    self._path,
                    subdir=os.path.isdir(self._path),
                    readonly=True,
                    lock=False,
                )
            return self._map

    def rest(self) -> None:
        """Close the map: mapped pages cannot be dropped."""
        if self._map is not None:
            self._map.close()
            self._map = None


def open(dataset: Dataset) -> Lmdb:  # noqa: A001 - the contract's name
    """Open a set."""
    return Lmdb(dataset)
