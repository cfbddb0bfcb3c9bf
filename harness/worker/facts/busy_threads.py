"""Watch some steps from outside the framework: busy threads, native printing."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from typing import Dict, Iterator, List, Optional

BUSY = 0.1
"""A thread worked if it computed at least this share of the busiest one's time."""
TASKS = "/proc/self/task"
THREAD_CLOCK = 0b110
"""Linux: with the complement of a thread's number above it, the clock of its time on a CPU."""
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
    """Read each thread's time on a CPU by its clock; empty where the system lists no threads.

    Not from /proc's schedstat: what a running thread did since the last tick is not in it yet,
    and a step shorter than a tick would have computed nothing.
    """
    found: Dict[str, int] = {}
    try:
        threads = os.listdir(TASKS)
    except OSError:  # no Linux
        return found
    for thread in threads:
        with suppress(OSError):  # it ended meanwhile
            found[thread] = time.clock_gettime_ns(~int(thread) << 3 | THREAD_CLOCK)
    return found


def named(name: str) -> Optional[int]:
    """Count this process's threads of that name, as a pool gives it; None where there is none."""
    count = 0
    for thread in os.listdir(TASKS) if os.path.isdir(TASKS) else ():
        path = os.path.join(TASKS, thread, "comm")
        with suppress(OSError), open(path, encoding="utf-8") as file:  # it may have ended
            count += file.read().strip() == name
    return count or None


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
