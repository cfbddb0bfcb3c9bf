"""This file writes rows of numbers as the machines that train read them."""

from __future__ import annotations

import sys
from array import array
from pathlib import Path
from typing import Any

from harness.node.durable import settle


def write_numbers(path: Path, numbers: array[Any]) -> None:
    """Write numbers as every machine that trains has them: little-endian."""
    if sys.byteorder != "little":
        numbers.byteswap()
    path.write_bytes(numbers.tobytes())
    settle(path)
