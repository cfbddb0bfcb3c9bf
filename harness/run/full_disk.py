"""Tell a full disk by the state of its file system, never by what a rank says of some disk.

Frameworks say "No space left on device" of a container's small /dev/shm as well, and of a tier that
only one cell writes to.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)
_ROOM_BYTES = 4 << 20
"""Less than this, and a trial's own events may not have found room."""
_OTHERS = ("/dev/shm", "/tmp")  # noqa: S108  looked at, never written to


def is_full(folder: Path) -> bool:
    """Whether a small file finds no room in a folder: blocks, inodes and quota count alike."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, _ROOM_BYTES)
    except OSError as problem:
        return problem.errno in _FULL
    return False


def hint(reason: str) -> str:
    """Say where to look if ranks spoke of a full disk and the run's own has room; else nothing."""
    if not any(os.strerror(number) in reason for number in _FULL):
        return ""
    full = [place for place in _OTHERS if _free_bytes(place) < _ROOM_BYTES]
    where = f"{' and '.join(full)} is full now" if full else "look at /dev/shm and /tmp"
    stop = "" if reason.endswith((".", "!", "?")) else "."
    return f"{stop} The run's own disk has room; {where}, or at the tier that the trial writes to."


def _free_bytes(place: str) -> int:
    try:
        return shutil.disk_usage(place).free
    except OSError:  # no such place here
        return _ROOM_BYTES
