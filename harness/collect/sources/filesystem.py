"""Read how full the file system is that the trial writes to.

A network file system may keep its caller waiting for minutes: this source has its own thread.
"""

from __future__ import annotations

import os

from harness.collect.sampler import Observed
from harness.store.samples.samples_format import Channel

HZ = 0.2
MOST_HZ = 1.0  # each reading may be a question to the server that all nodes share
BLOCKS = True


def open(observed: Observed) -> FileSystem:  # noqa: A001 - the contract's name
    """Open the source."""
    return FileSystem(observed)


class FileSystem:
    """Space of the file system below the run directory."""

    def __init__(self, observed: Observed) -> None:
        self._path = observed.directory
        names = ("filesystem.total", "filesystem.free")
        self.channels = tuple(Channel(name, "bytes", "gauge", "run-directory") for name in names)
        self.read()

    def read(self) -> list[int]:
        """Ask the file system."""
        stat = os.statvfs(self._path)
        return [stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize]

    def close(self) -> None:
        """Nothing is held open: that would keep the file system busy."""
