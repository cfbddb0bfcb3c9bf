"""Write files whole or not at all, and wait until what was written is on its disk."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterator, Union


@contextmanager
def whole_file(path: Path, *, settled: bool = True) -> Iterator[Path]:
    """Give a name beside a file's own to write under; it gets its own once that went well.

    A reader, or a crash, meets the file whole or not at all. One that is not ``settled`` may be
    lost by a power cut, and its name with it.
    """
    # Under a name that nobody can have taken before, with a link to somebody's file.
    beside = path.with_name(".{}.{}.new".format(path.name, os.urandom(8).hex()))
    try:
        yield beside
        if settled:
            settle(beside)
        os.replace(str(beside), str(path))
    except BaseException:
        with suppress(OSError):  # it was never made, and what went wrong is told anyway
            beside.unlink()
        raise
    if settled:
        settle(path.parent)


def settle(path: "Union[str, os.PathLike[str]]") -> None:
    """Wait until a file's content, or the names in a folder, would survive a crash."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
