"""Read samples as plain stretches of bytes around the page cache, with O_DIRECT.

What is read so comes from storage whatever the caches hold, and leaves nothing in them. Requests
begin and end at whole pages, into a buffer of each thread; the sample's bytes are copied out of it.
"""

from __future__ import annotations

import mmap
import os
import threading
from typing import Any

from harness.worker.contracts import Unsupported
from harness.worker.input.dataset import Dataset


class Direct:
    """The samples of a set by their places; each read opens its file."""

    def __init__(self, dataset: Dataset) -> None:
        if not dataset.has_index:
            raise Unsupported(
                "samples in {} are no plain stretches of a file".format(dataset.format)
            )
        dataset.index()
        self._stretch = dataset.stretch
        self._room = int(dataset.manifest["largest"]) + 2 * mmap.PAGESIZE
        self._own: Any = threading.local()
        try:
            os.close(self._open(dataset.paths[0]))
        except OSError as error:  # tmpfs and some network file systems know no O_DIRECT
            raise Unsupported("{}: no O_DIRECT here: {}".format(dataset.folder, error)) from None

    def _open(self, path: str) -> int:
        return os.open(path, os.O_RDONLY | os.O_DIRECT)

    def read(self, sample: int, into: memoryview) -> int:
        """Read one sample's bytes."""
        path, offset, length = self._stretch(sample)
        buffer = getattr(self._own, "buffer", None)
        if buffer is None:
            buffer = self._own.buffer = memoryview(mmap.mmap(-1, self._room))
        start = offset // mmap.PAGESIZE * mmap.PAGESIZE
        wanted = offset - start + length
        descriptor = self._open(path)
        try:
            done = 0
            while done < wanted:  # a file's last page is read as far as it goes
                end = -(-wanted // mmap.PAGESIZE) * mmap.PAGESIZE
                more = os.preadv(descriptor, [buffer[done:end]], start + done)
                done += more
                if not more or (done < wanted and done % mmap.PAGESIZE):
                    raise EOFError(
                        "{} ends before its sample does; `bakeoff data check`".format(path)
                    )
        finally:
            os.close(descriptor)
        into[:length] = buffer[offset - start : wanted]
        return length
