"""Read and write one large file as fast as its storage goes, with no framework at all.

The page cache is gone around with O_DIRECT where the file system has it; else what was read is
dropped from the cache, and what was written is made durable, at each step.
"""

from __future__ import annotations

import mmap
import os
from typing import Mapping, Optional

from harness.worker.contracts import Unsupported

_REQUESTS = 32
"""The file is so many requests long; then it is read or written again from its start."""
_DIRECT = getattr(os, "O_DIRECT", 0)


class StorageActivity:
    """Requests of one size, one after the other."""

    def __init__(self, kernel: str, size: int, folder: Optional[str]) -> None:
        self.units: Mapping[str, float] = {"bytes": float(size)}
        self._is_read = kernel == "read"
        self._size = size
        self._place = 0
        self._buffer = mmap.mmap(-1, size)  # its address is a whole page's, as O_DIRECT wants
        self._buffer.write(os.urandom(size))
        if folder is None:
            raise Unsupported("which storage? tier = one of the platform's [storage.NAME]")
        if not os.access(folder, os.W_OK):
            raise Unsupported("{}: nobody may write there".format(folder))
        self._path = os.path.join(folder, ".bakeoff-ceiling-{}".format(os.getpid()))
        self._file, self.is_direct = self._open()

    def _open(self) -> "tuple[int, bool]":
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        try:
            descriptor, is_direct = os.open(self._path, flags | _DIRECT, 0o600), bool(_DIRECT)
        except OSError:  # tmpfs and some network file systems know no O_DIRECT
            if os.path.exists(self._path):
                os.unlink(self._path)
            descriptor, is_direct = os.open(self._path, flags, 0o600), False
        try:
            os.unlink(self._path)  # the descriptor keeps it; nothing stays behind
            if self._is_read:
                for number in range(_REQUESTS):
                    os.pwrite(descriptor, self._buffer, number * self._size)
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            os.close(descriptor)
            raise Unsupported("{}: {}".format(self._path, error)) from None
        return descriptor, is_direct

    def step(self) -> None:
        """Make one request."""
        offset = self._place * self._size
        self._place = (self._place + 1) % _REQUESTS
        if not self._is_read:
            os.pwrite(self._file, self._buffer, offset)
            os.fdatasync(self._file)
            return
        os.preadv(self._file, [self._buffer], offset)
        if not self.is_direct:
            os.posix_fadvise(self._file, offset, self._size, os.POSIX_FADV_DONTNEED)

    def sync(self) -> None:
        """Return at once: a request is done when it returns."""

    def values(self) -> Mapping[str, float]:
        """Have computed nothing."""
        return {}

    def agree(self, value: float) -> float:
        """Give the value back: a ceiling is measured by one rank."""
        return value
