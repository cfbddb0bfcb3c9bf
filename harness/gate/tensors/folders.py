"""Read and write tensor folders (``harness/worker/gate/tensors.py``) with numpy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.worker.gate.tensors import Folder, Tensor, Writer, read

_TYPES = {"float64": "<f8", "float32": "<f4", "int64": "<i8"}
_WRITTEN: dict[str, npt.DTypeLike] = {
    "float64": np.float64,
    "float32": np.float32,
    "int64": np.int64,
}


def open_folder(path: Path) -> Folder:
    """Open a finished folder."""
    return read(str(path))


def array(tensor: Tensor) -> npt.NDArray[Any]:
    """Map a tensor's file into memory, shaped."""
    if not tensor.count():
        return np.zeros(tensor.shape, _TYPES[tensor.dtype])
    return np.memmap(tensor.path, _TYPES[tensor.dtype], "r", shape=tensor.shape or (1,)).reshape(
        tensor.shape
    )


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
