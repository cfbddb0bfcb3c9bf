"""Wait until what was written is on its disk."""

from __future__ import annotations

import os
from typing import Union


def settle(path: "Union[str, os.PathLike[str]]") -> None:
    """Wait until a file's content, or the names in a folder, would survive a crash."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
