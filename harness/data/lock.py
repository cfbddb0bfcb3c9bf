"""See to it that one command at a time makes or remove a data set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from harness import locks
from harness.data.sets import MADE
from harness.errors import BakeoffError


@contextmanager
def claimed(folder: Path) -> Iterator[TextIO]:
    """Lock the log of an unfinished set for writing; refuse where another process has."""
    while True:
        try:
            log = (folder / MADE).open("a", encoding="utf-8")
        except FileNotFoundError:
            raise BakeoffError(f"{folder}: another command just removed this data set.") from None
        with log:
            if not locks.take(log):
                raise BakeoffError(
                    f"{folder}: another command is making or removing this data set. Wait until it "
                    "has ended, and repeat yours."
                )
            if _is_there(log, folder / MADE):
                yield log
                return


def _is_there(log: TextIO, path: Path) -> bool:
    """Tell whether a log has its name still: who held it before may have finished and deleted it
    between our opening and our locking it.
    """
    try:
        return os.path.samestat(os.fstat(log.fileno()), path.stat())
    except FileNotFoundError:
        return False
