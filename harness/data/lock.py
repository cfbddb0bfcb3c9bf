"""This file sees to it that one command at a time makes or removes a data set."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from harness.data.sets import MADE
from harness.errors import BakeoffError


@contextmanager
def claimed(folder: Path) -> Iterator[TextIO]:
    """Hold the log of what was made of a set, to write on; refuse where somebody else does."""
    with (folder / MADE).open("a", encoding="utf-8") as log:
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BakeoffError(
                f"{folder}: another command is making or removing this data set. Wait until it "
                "has ended, and repeat yours."
            ) from None
        except OSError:  # a file system without locks, as Lustre is unless told otherwise
            pass
        yield log
