"""Import numpy for the commands that only read: no statistic here multiplies matrices."""

from __future__ import annotations

import importlib

from harness.blas_threads import one_thread


def import_numpy() -> None:
    """Import numpy without the threads of its linear algebra."""
    with one_thread():
        importlib.import_module("numpy")
