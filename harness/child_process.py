"""End a process when the one that started it ends, even if that was killed."""

from __future__ import annotations

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """Watch the parent from now on; called in a process that ``multiprocessing`` started."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
