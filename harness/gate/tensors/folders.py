"""Read and write tensor folders (``harness/worker/gate/tensors.py``) with numpy.

What a trial made lies in its run directory: it is opened as everything there is, without following
a link, and its index is believed in nothing that leads elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.errors import DamagedFile
from harness.store import typed
from harness.store.contained import Contained
from harness.worker.gate.tensors import INDEX, VERSION, Folder, Tensor, Writer, read

_TYPES = {"float64": "<f8", "float32": "<f4", "int64": "<i8"}
_WRITTEN: dict[str, npt.DTypeLike] = {
    "float64": np.float64,
    "float32": np.float32,
    "int64": np.int64,
}


_FILE = re.compile(r"[0-9]{1,9}\.raw", re.ASCII)


@dataclass(frozen=True)
class _MadeTensor(Tensor):
    """A tensor of a run's folder."""

    files: Contained = field(default_factory=lambda: Contained(Path()))


@dataclass(frozen=True)
class _Entry:
    """What an index says of a tensor."""

    file: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class _Index:
    """What an index holds."""

    version: int
    about: Mapping[str, Any]
    tensors: Mapping[str, _Entry]


def open_folder(path: Path) -> Folder:
    """Open a finished folder of this user's own."""
    return read(str(path))


def open_made(files: Contained, folder: Path) -> Folder:
    """Open a folder that a trial made; say which file is damaged, and what of it."""
    place = folder / INDEX
    raw = files.read_object(place)
    with typed.damage(place):
        index = typed.read(_Index, raw)
        if index.version != VERSION:
            raise ValueError(f"version {index.version} is not {VERSION}")
        for name, one in index.tensors.items():
            if (
                not _FILE.fullmatch(one.file)
                or one.dtype not in _TYPES
                or min(one.shape, default=0) < 0
            ):
                raise ValueError(f"tensors.{name:.80} names no file and shape of this folder")
    made = {
        name: _MadeTensor(str(folder / one.file), one.shape, one.dtype, files)
        for name, one in index.tensors.items()
    }
    return Folder(made, index.about)


def array(tensor: Tensor) -> npt.NDArray[Any]:
    """Map a tensor's file into memory, shaped."""
    if not tensor.count():
        return np.zeros(tensor.shape, _TYPES[tensor.dtype])
    shape = tensor.shape or (1,)
    if not isinstance(tensor, _MadeTensor):
        return np.memmap(tensor.path, _TYPES[tensor.dtype], "r", shape=shape).reshape(tensor.shape)
    path = Path(tensor.path)
    try:
        file = tensor.files.reading(path)
    except FileNotFoundError:
        raise DamagedFile(f"{path}: there is no such file.") from None
    with file:
        needed = tensor.count() * np.dtype(_TYPES[tensor.dtype]).itemsize
        if os.fstat(file.fileno()).st_size != needed:
            raise DamagedFile(f"{path} is damaged: its shape needs {needed} bytes.")
        return np.memmap(file, _TYPES[tensor.dtype], "r", shape=shape).reshape(tensor.shape)


def arrays(folder: Folder, prefix: str) -> dict[str, npt.NDArray[Any]]:
    """Map all tensors into memory whose names start with ``prefix``, which is cut off."""
    return {name: array(tensor) for name, tensor in folder.under(prefix).items()}


def write(path: Path, tensors: Mapping[str, npt.NDArray[Any] | Tensor], about: Any) -> None:
    """Write a folder; a tensor that lies in another folder stays there and is named here."""
    writer = Writer(str(path))
    for name, values in tensors.items():
        if isinstance(values, Tensor):
            writer.lend(name, values)
        else:
            put(writer, name, values)
    writer.close(about)


def put(writer: Writer, name: str, values: npt.ArrayLike, dtype: str = "float64") -> None:
    """Write one array; class numbers are written as such."""
    whole = np.asarray(values)
    dtype = "int64" if whole.dtype.kind == "i" else dtype
    items = np.ascontiguousarray(whole, dtype=_WRITTEN[dtype])
    writer.put(name, whole.shape, items.reshape(-1), dtype)
