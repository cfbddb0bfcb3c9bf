"""Read sets of HDF5 files with h5py: a data set named x, its first dimension samples.

h5py holds one lock around the library, so threads take turns in it.
"""

from __future__ import annotations

from typing import Any, Dict

from harness.worker.contracts import Unsupported
from harness.worker.input.dataset import Dataset


class Hdf5:
    """Files that stay open."""

    def __init__(self, dataset: Dataset) -> None:
        try:
            import h5py
            import numpy
        except ImportError as error:
            raise Unsupported("HDF5 needs h5py in this environment: {}".format(error)) from None
        self._library = h5py
        self._numpy = numpy
        self._dataset = dataset
        self._size = int(dataset.manifest["largest"])
        self._dtype = numpy.dtype(dataset.manifest["dtype"])
        self._open: Dict[int, Any] = {}

    def read(self, sample: int, into: memoryview) -> int:
        """Read one sample straight into its place."""
        file, number = self._dataset.place(sample)
        if file not in self._open:
            self._open[file] = self._library.File(self._dataset.paths[file], "r")["x"]
        stored = self._open[file]
        place = self._numpy.frombuffer(into[: self._size], self._dtype)
        stored.read_direct(place.reshape(stored.shape[1:]), self._numpy.s_[number])
        return self._size


def open(dataset: Dataset) -> Hdf5:  # noqa: A001 - the contract's name
    """Open a set."""
    return Hdf5(dataset)
