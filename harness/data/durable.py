"""This file writes what a lost power supply must not take."""

from __future__ import annotations

import os
import sys
from array import array
from pathlib import Path
from typing import Any


def write_numbers(path: Path, numbers: array[Any]) -> None:
    """Write numbers as every machine that trains has them: little-endian."""
    if sys.byteorder != "little":
        numbers.byteswap()
    path.write_bytes(numbers.tobytes())
    settle(path)


def settle(path: Path) -> None:
    """Wait until a file or folder is on its disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
