"""Import numpy, here or in a process that is started, without the threads of its linear algebra.

Starting them costs more processor time than reading a run of fifty cells. They wait for work by
spinning: with two of them, products of few samples took eight times the CPU seconds of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_THREADS = "OPENBLAS_NUM_THREADS"


@contextmanager
def one_thread() -> Iterator[None]:
    """Let what is imported or started meanwhile have one, unless the user chose another number.

    The wish is withdrawn at once: what is started later must not inherit it.
    """
    if _THREADS in os.environ:
        yield
        return
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_THREADS]
