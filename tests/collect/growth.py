"""Wait for a file to grow, woken by the kernel: inotify(7) through the C library."""

from __future__ import annotations

import ctypes
import os
import select
from pathlib import Path
from types import TracebackType

_IN_MODIFY = 2
PATIENCE_S = 60.0


class Growth:
    """The writes to one file from now on."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._descriptor = library.inotify_init1(os.O_CLOEXEC)
        if library.inotify_add_watch(self._descriptor, os.fsencode(path), _IN_MODIFY) < 0:
            raise OSError(ctypes.get_errno(), "cannot be watched", str(path))

    def wait(self) -> None:
        """Return when something was written since the last time."""
        ready, _, _ = select.select([self._descriptor], [], [], PATIENCE_S)
        assert ready, "nothing more was written"
        os.read(self._descriptor, 1 << 12)

    def __enter__(self) -> Growth:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)
