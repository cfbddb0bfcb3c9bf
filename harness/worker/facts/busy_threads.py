"""Watch some steps from outside the framework: busy threads, native printing."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from typing import Dict, Iterator, List, Optional

BUSY = 0.1
"""A thread worked if it computed at least this share of the busiest one's time."""
TASKS = "/proc/self/task"
STDERR = 2


class Threads:
    """Counts the threads of this process that computed since it was made."""

    def __init__(self) -> None:
        self._before = _computed_ns()

    def busy(self) -> Optional[int]:
        """Count them; unknown where the system does not tell."""
        spent = [now - self._before.get(thread, 0) for thread, now in _computed_ns().items()]
        if not spent or max(spent) <= 0:
            return None
        return sum(one >= BUSY * max(spent) for one in spent)


def _computed_ns() -> Dict[str, int]:
    """Read each thread's time on a CPU (proc(5), schedstat); empty where there is none."""
    found: Dict[str, int] = {}
    try:
        threads = os.listdir(TASKS)
    except OSError:  # no Linux
        return found
    for thread in threads:
        spent = _spent_ns(thread)
        if spent is not None:
            found[thread] = spent
    return found


def _spent_ns(thread: str) -> Optional[int]:
    try:
        with open("{}/{}/schedstat".format(TASKS, thread), encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError, IndexError):  # it ended meanwhile, or the kernel keeps none
        return None


@contextmanager
def printed(to: int = 1) -> Iterator[List[str]]:
    """Collect what native code prints: libraries write to a file descriptor, below Python."""
    import ctypes

    lines: List[str] = []
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(to)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), to)
        try:
            yield lines
        finally:
            ctypes.CDLL(None).fflush(None)
            os.dup2(kept, to)
            os.close(kept)
            file.seek(0)
            said = file.read()
            lines += said.decode("utf-8", "replace").splitlines()
            if to == STDERR:
                os.write(STDERR, said)  # whoever looks for an error still finds it there
