"""What goes on with checkpoints behind the training: one thread, one after the other.

It waits for a saver that writes by itself, and drains the fast tier to the slow one: each file is
copied and hashed on the way, made durable, and renamed when all are there; only then does the copy
on the fast tier go. What the fast tier holds is bounded: ``room`` says how many may be under way,
and the next one waits. A fault is raised to whoever saves next, or finishes.
"""

from __future__ import annotations

import hashlib
import os
import queue
import threading
from typing import Callable, Optional

from harness.worker.checkpoints import checkpoint_files as keeping
from harness.worker.checkpoints.checkpoint_files import File, Kept

Task = Callable[[], None]


class Corrupt(Exception):
    """Say that a file was not, on its way to the slow tier, what it had been when it was saved."""


class Background:
    """Tasks in the order in which they came, at most ``room`` at a time."""

    def __init__(self, room: int) -> None:
        self._slots = threading.BoundedSemaphore(room)
        self._room = room
        self._tasks: "queue.Queue[Optional[Task]]" = queue.Queue()
        self._fault: Optional[BaseException] = None
        self._thread: Optional[threading.Thread] = None

    def reserve(self) -> None:
        """Wait until there is room for one more; raise what went wrong meanwhile."""
        self._slots.acquire()
        if self._fault is not None:
            self._slots.release()
            self._raise()

    def put(self, task: Task) -> None:
        """Hand over what a reserved slot is for."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="checkpoints", daemon=True)
            self._thread.start()
        self._tasks.put(task)

    def release(self) -> None:
        """Give a slot back that came to nothing."""
        self._slots.release()

    def finish(self) -> None:
        """Wait until everything is done; raise what went wrong."""
        for _ in range(self._room):
            self._slots.acquire()
        for _ in range(self._room):
            self._slots.release()
        self._raise()

    def close(self) -> None:
        """End the thread, after what it still has to do."""
        if self._thread is not None:
            self._tasks.put(None)
            self._thread.join()
            self._thread = None

    def _raise(self) -> None:
        if self._fault is not None:
            raise self._fault

    def _work(self) -> None:
        for task in iter(self._tasks.get, None):
            if self._fault is None:  # order: nothing newer after one that failed
                self._do(task)
            self._slots.release()

    def _do(self, task: Task) -> None:
        try:
            task()
        except BaseException as fault:  # noqa: BLE001 - raised again where somebody waits
            self._fault = fault


def drain(one: Kept, slow: str) -> Kept:
    """Copy a checkpoint to the slow tier; what was under its name there is whole at any moment."""
    folder = keeping.begin(slow, one.step)
    for name, file in one.files.items():
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if _copy(os.path.join(one.folder, name), target) != file:
            raise Corrupt("{} changed after it was saved".format(os.path.join(one.folder, name)))
    return keeping.appear(slow, one.step, one.files)


def _copy(source: str, target: str) -> File:
    """Copy a file, make it durable, and hash what was copied."""
    whole, size = hashlib.sha256(), 0
    with open(source, "rb", buffering=0) as file, open(target, "wb", buffering=0) as copy:
        for chunk in keeping.chunks(file):
            whole.update(chunk)
            size += len(chunk)
            while chunk:
                chunk = chunk[copy.write(chunk) :]
        os.fsync(copy.fileno())
    return File(size, whole.hexdigest())
