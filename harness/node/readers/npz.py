"""This file reads sets of .npz files: compressed archives of one array, inflated whole."""

from __future__ import annotations

import struct
import zlib
from typing import Any, Dict, Tuple

from harness.node.input.dataset import Dataset
from harness.node.readers.npy import header

_LOCAL = struct.Struct("<4s5H3L2H")
"""The header before an entry of a zip archive (APPNOTE.TXT 4.3.7)."""
_DEFLATED = 8


class Npz:
    """Archives with an array each; a file of many samples is inflated once for its neighbours."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._size = int(dataset.manifest["largest"])
        self._last: Tuple[int, Any] = (-1, b"")

    def read(self, sample: int, into: memoryview) -> int:
        """Inflate the file that holds a sample, and copy the sample out of it."""
        file, number = self._dataset.place(sample)
        held, data = self._last
        if held != file:
            data = inflated(self._dataset.paths[file])
            if self._dataset.held[file] > 1:
                self._last = (file, data)
        start = header(data).start + number * self._size
        into[: self._size] = memoryview(data)[start : start + self._size]
        return self._size


def inflated(path: str) -> bytes:
    """Give the one entry of an archive."""
    with open_file(path, "rb") as file:
        archive = file.read()
    told: Dict[str, int] = {}
    _, _, _, method, _, _, told["crc"], packed, size, name, extra = _LOCAL.unpack_from(archive)
    start = _LOCAL.size + name + extra
    if not packed:  # its size stands behind it, where the archive was written as a stream
        raise ValueError("{}: an archive with a streamed entry".format(path))
    body = memoryview(archive)[start : start + packed]
    data = zlib.decompress(body, -15, size) if method == _DEFLATED else bytes(body)
    if len(data) != size or zlib.crc32(data) != told["crc"]:
        raise ValueError("{} is damaged; `bakeoff data check`".format(path))
    return data


open_file = open


def open(dataset: Dataset) -> Npz:  # noqa: A001 - the contract's name
    """Open a set."""
    return Npz(dataset)
