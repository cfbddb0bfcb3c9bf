"""Write what lies beside a set's files, as the machines that train read it."""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.worker.durable import settle
from harness.worker.input.dataset import FILES, IMPRINTS, INDEX, KEYS, TARGETS


def write_numbers(path: Path, numbers: array[Any]) -> None:
    """Write numbers as every machine that trains has them: little-endian."""
    if sys.byteorder != "little":
        numbers.byteswap()
    path.write_bytes(numbers.tobytes())
    settle(path)


def sums(folder: Path, closing: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Digest what lies beside the files of a set, and what closes them."""
    sums_by_name = {}
    for name in (INDEX, TARGETS, IMPRINTS, KEYS, *(f"{FILES}/{one}" for one in closing)):
        if (folder / name).is_file():
            data = (folder / name).read_bytes()
            sums_by_name[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return sums_by_name
