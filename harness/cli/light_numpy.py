"""Import numpy without the threads of its linear algebra.

Starting them costs more processor time than reading a run of fifty cells, and no statistic here
multiplies matrices. The wish is withdrawn at once: what a command starts must not inherit it.
"""

from __future__ import annotations

import importlib
import os

_THREADS = "OPENBLAS_NUM_THREADS"


def import_numpy() -> None:
    """Import numpy for the commands that only read."""
    if _THREADS in os.environ:
        importlib.import_module("numpy")
        return
    os.environ[_THREADS] = "1"
    try:
        importlib.import_module("numpy")
    finally:
        del os.environ[_THREADS]
