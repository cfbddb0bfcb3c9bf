"""Open, stat and close every file and read none: what a file system's names cost.

Each thread takes whole batches in turns, so that between two files there is nothing but Python's
loop; every call gives the interpreter's lock away while the file system answers.
"""

from __future__ import annotations

import os
import threading
from typing import Any, List, Optional, Sequence

from harness.worker.input.dataset import Dataset
from harness.worker.input.loaders.loader import Batch


class OpeningLoader:
    """Threads that ask a file system about files."""

    keeps_order = True

    def __init__(self, dataset: Dataset, *, batch_per_rank: int, threads: int) -> None:
        self._paths = dataset.paths
        self._batch_per_rank = batch_per_rank
        self._order: Sequence[int] = ()
        self._given = 0
        self._fault: Optional[BaseException] = None
        self._go = [threading.Semaphore(0) for _ in range(threads)]
        self._done = [threading.Semaphore(0) for _ in range(threads)]
        self._threads = [
            threading.Thread(target=self._serve, args=(number,), daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def begin(self, order: Sequence[int]) -> None:
        """Start an epoch; the first batch starts the threads."""
        self._order = order
        self._given = 0

    def next(self) -> Batch:
        """Give the next batch: the files that were there, and no byte of them."""
        if not self._given:
            for go in self._go:
                go.release()
        self._done[self._given % len(self._threads)].acquire()
        if self._fault is not None:
            raise self._fault
        start = self._given * self._batch_per_rank
        self._given += 1
        return Batch(self._order[start : start + self._batch_per_rank], (), 0)

    def _serve(self, number: int) -> None:
        go, done = self._go[number], self._done[number]
        stride = self._batch_per_rank * len(self._threads)
        while True:
            go.acquire()
            order = self._order
            if not order:
                return
            for start in range(number * self._batch_per_rank, len(order), stride):
                try:
                    self._ask(order[start : start + self._batch_per_rank])
                except BaseException as fault:  # noqa: BLE001 handed to whoever waits for the batch
                    self._fault = fault
                done.release()

    def _ask(self, samples: Sequence[int]) -> None:
        paths, begin, stat, end = self._paths, os.open, os.fstat, os.close
        for sample in samples:
            descriptor = begin(paths[sample], os.O_RDONLY)
            stat(descriptor)
            end(descriptor)

    def rest(self) -> None:
        """Hold no file open between epochs."""

    def pids(self) -> List[Any]:
        """Ask with threads only."""
        return []

    def close(self) -> None:
        """End the threads."""
        self._order = ()
        for go, thread in zip(self._go, self._threads):
            go.release()
            thread.join()
