"""The raw tensor folder: how the host and a worker hand each other exact numbers.

    index.json    {"version": 1, "about": {...}, "tensors": {NAME: {"file", "shape", "dtype"}}}
    <number>.raw  the tensor's items in C order, little endian, and nothing else

``dtype`` is ``float64``, ``float32`` or ``int64`` (class numbers). ``about`` is free JSON: a
request on the way to a worker, facts on the way back. The index is written last: a folder without
one is unfinished. numpy reads a file with ``numpy.fromfile(path, "<f8")``; frameworks take
``items()``, which is a buffer of their own to write to; nothing here needs any of them.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Mapping, Sequence, Tuple

from harness.worker.durable import whole_file

VERSION = 2  # 1: first; 2: float32
INDEX = "index.json"
CODES = {"float64": "d", "float32": "f", "int64": "q"}


@dataclass(frozen=True)
class Tensor:
    """One tensor of a folder; its items are read when looked at."""

    path: str
    shape: Tuple[int, ...]
    dtype: str

    def count(self) -> int:
        """Count the items."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def items(self) -> memoryview:
        """Give the items, flat and in C order, in this machine's byte order.

        They are the file's own pages, since a state may take 200 MB; what is written to them stays
        here, and does not reach the file.
        """
        code: Any = CODES[self.dtype]
        needed, there = self.count() * array(code).itemsize, os.path.getsize(self.path)
        if there != needed:
            how = "longer" if there > needed else "shorter"
            raise ValueError("{} is {} than shape {}".format(self.path, how, self.shape))
        if not needed:  # nothing can be mapped
            return memoryview(array(code))
        with open(self.path, "rb") as file:
            pages = mmap.mmap(file.fileno(), needed, access=mmap.ACCESS_COPY)
        return _own(memoryview(pages).cast(code))


@dataclass(frozen=True)
class Repeated(Tensor):
    """A batch of few different samples: rows of a tensor's file, each perhaps several times."""

    rows: Tuple[int, ...] = ()

    def items(self) -> memoryview:
        """Read the rows and lay them behind each other."""
        row = Tensor(self.path, self.shape[1:], self.dtype).count()
        items = array(CODES[self.dtype])
        with open(self.path, "rb") as file:
            for number in self.rows:
                file.seek(number * row * items.itemsize)
                items.fromfile(file, row)
        return _own(memoryview(items))


@dataclass(frozen=True)
class Zeros(Tensor):
    """A tensor of no file, all of zeros."""

    def items(self) -> memoryview:
        """Make them."""
        return memoryview(array(CODES[self.dtype], [0]) * self.count())


def _own(items: memoryview) -> memoryview:
    """Bring what was read into this machine's byte order."""
    if sys.byteorder == "little":
        return items
    swapped = array(items.format, items)
    swapped.byteswap()
    return memoryview(swapped)


@dataclass(frozen=True)
class Folder:
    """A finished folder: its tensors by name and what was said about them."""

    tensors: Mapping[str, Tensor]
    about: Mapping[str, Any]

    def under(self, prefix: str) -> Dict[str, Tensor]:
        """Give the tensors whose names start with ``prefix``, with the prefix cut off."""
        return {
            name[len(prefix) :]: tensor
            for name, tensor in self.tensors.items()
            if name.startswith(prefix)
        }


def read(folder: str) -> Folder:
    """Read a folder's index; refuse one written by another version."""
    with open(os.path.join(folder, INDEX), encoding="utf-8") as file:
        index = json.load(file)
    if index["version"] != VERSION:
        raise ValueError("tensor folder version {} is not {}".format(index["version"], VERSION))
    tensors = {
        name: Tensor(os.path.join(folder, entry["file"]), tuple(entry["shape"]), entry["dtype"])
        for name, entry in index["tensors"].items()
    }
    return Folder(tensors, index["about"])


class Writer:
    """Write a folder tensor by tensor; ``close`` finishes it."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._folder = folder
        self._tensors: Dict[str, Dict[str, Any]] = {}

    def put(self, name: str, shape: Sequence[int], items: Any, dtype: str = "float64") -> None:
        """Write one tensor; ``items`` is any C-ordered buffer of its items in native byte order."""
        if name in self._tensors:
            raise ValueError("tensor {} was already written".format(name))
        data = memoryview(items).cast("B")
        count = Tensor("", tuple(shape), dtype).count()
        needed = count * array(CODES[dtype]).itemsize
        if data.nbytes != needed:
            raise ValueError(
                "tensor {} has {} bytes; shape {} of {} needs {}".format(
                    name, data.nbytes, tuple(shape), dtype, needed
                )
            )
        file_name = "{}.raw".format(len(self._tensors))
        with open(os.path.join(self._folder, file_name), "wb") as file:
            if sys.byteorder == "big":
                swapped = array(CODES[dtype], data.tobytes())
                swapped.byteswap()
                swapped.tofile(file)
            else:
                file.write(data)
        self._tensors[name] = {"file": file_name, "shape": list(shape), "dtype": dtype}

    def repeat(self, name: str, of: str) -> None:
        """Give a tensor of this folder another name; nothing is copied."""
        self._tensors[name] = self._tensors[of]

    def lend(self, name: str, tensor: Tensor) -> None:
        """Name a tensor of another folder, which has to stay; nothing is copied."""
        self._tensors[name] = {
            "file": os.path.abspath(tensor.path),
            "shape": list(tensor.shape),
            "dtype": tensor.dtype,
        }

    def close(self, about: Mapping[str, Any]) -> None:
        """Write the index, which makes the folder a finished one."""
        path = Path(self._folder, INDEX)
        index = {"version": VERSION, "about": dict(about), "tensors": self._tensors}
        with whole_file(path, settled=False) as beside:
            beside.write_text(json.dumps(index, indent=1), encoding="utf-8")
