"""Tell when a folder was made: no copy of it shares that, and no rename or reboot changes it."""

from __future__ import annotations

import os
import struct
from pathlib import Path

_FROM_HERE = -100
_BIRTH = 0x800
_SIZE, _MASK_AT, _BIRTH_AT = 256, 0, 80
"""Of the structure that statx(2) fills: its size, and where the two stand that are read of it."""


def born_ns(folder: Path) -> int | None:
    """Give when a folder was made (nanoseconds, wall clock); None where nobody keeps that.

    NFS of old servers and network file systems of old kernels do not; some give 0.
    """
    import ctypes  # few commands ask

    statx = getattr(ctypes.CDLL(None), "statx", None)
    told = ctypes.create_string_buffer(_SIZE)
    if statx is None or statx(_FROM_HERE, os.fsencode(folder), 0, _BIRTH, told) != 0:
        return None
    (mask,) = struct.unpack_from("=I", told, _MASK_AT)
    seconds, nanoseconds = struct.unpack_from("=qI", told, _BIRTH_AT)
    return (seconds * 10**9 + nanoseconds or None) if mask & _BIRTH else None
