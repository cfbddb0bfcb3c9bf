"""The plain loader: T threads that each read one sample at a time, into kept memory.

Buffers are made once and used again, so that no batch pays for fresh pages. With ``prefetch`` 0 the
threads share the reading of one batch while its consumer waits; with more they are so many batches
ahead of it.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any, Callable, List, Optional, Sequence, Tuple

from harness.worker.input.loaders.loader import Batch

Read = Callable[[int, memoryview], int]
"""Read a sample into a buffer and give its length; called by many threads at once."""


class _Work:
    """One batch on its way: what is to be read, where it goes, and how much is still missing."""

    def __init__(self, room: int, batch_per_rank: int) -> None:
        self.buffers = [memoryview(bytearray(room)) for _ in range(batch_per_rank)]
        self.samples: Sequence[int] = ()
        self.lengths = [0] * batch_per_rank
        self.left = 0
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.fault: Optional[BaseException] = None

    def start(self, samples: Sequence[int]) -> None:
        self.samples = samples
        self.left = len(samples)
        self.done.clear()

    def ended(self, fault: Optional[BaseException] = None) -> None:
        with self.lock:
            self.fault = self.fault or fault
            self.left -= 1
            if not self.left:
                self.done.set()


class PlainLoader:
    """Threads that read samples."""

    keeps_order = True

    def __init__(
        self,
        read: Read,
        *,
        room: int,
        batch_per_rank: int,
        threads: int,
        prefetch: int,
        rest: Callable[[], None] = lambda: None,
    ) -> None:
        self._read = read
        self.rest = rest
        self._batch_per_rank = batch_per_rank
        self._ring = [_Work(room, batch_per_rank) for _ in range(prefetch + 2)]
        self._prefetch = prefetch
        self._tasks: Any = SimpleQueue()
        self._order: Sequence[int] = ()
        self._asked = self._given = 0
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def begin(self, order: Sequence[int]) -> None:
        """Start an epoch."""
        self._order = order
        self._asked = self._given = 0

    def next(self) -> Batch:
        """Give the next batch in order."""
        while self._asked <= self._given + self._prefetch and self._ask():
            pass
        work = self._ring[self._given % len(self._ring)]
        self._given += 1
        work.done.wait()
        if work.fault is not None:
            raise work.fault
        lengths = work.lengths[: len(work.samples)]
        data = [buffer[:length] for buffer, length in zip(work.buffers, lengths)]
        return Batch(work.samples, data, sum(lengths))

    def _ask(self) -> bool:
        """Hand the next batch's samples to the threads; tell whether there was one."""
        start = self._asked * self._batch_per_rank
        samples = self._order[start : start + self._batch_per_rank]
        if not samples:
            return False
        work = self._ring[self._asked % len(self._ring)]
        work.start(samples)
        for slot in range(len(samples)):
            self._tasks.put((work, slot))
        self._asked += 1
        return True

    def _serve(self) -> None:
        get, read = self._tasks.get, self._read
        while True:
            task: Optional[Tuple[_Work, int]] = get()
            if task is None:
                return
            work, slot = task
            try:
                work.lengths[slot] = read(work.samples[slot], work.buffers[slot])
                work.ended()
            except BaseException as fault:  # noqa: BLE001 handed to whoever waits for the batch
                work.ended(fault)

    def pids(self) -> List[int]:
        """Read with threads only."""
        return []

    def close(self) -> None:
        """End the threads."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
