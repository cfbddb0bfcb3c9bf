"""The asynchronous reader: one thread or process that reads many samples at once.

After Lee et al. (2021): an I/O-dedicated thread of each rank fills one or two buffers in shared
memory while the rank computes. Samples of one file that lie side by side are read together
(``requests.py``), and each lands at its place in the order, which was permuted by file and within
the buffer. Where samples are no plain stretches of a file, the format's reader parses them. With
one buffer reading waits until the last batch of the buffer was taken; with two it goes on. More
threads than the paper's one share the filling of a buffer.

The whole memory is taken beforehand: buffers × samples in one × bytes of the largest sample.
"""

from __future__ import annotations

import mmap
import multiprocessing
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, List, Optional, Sequence

from harness.worker.input.dataset import Dataset
from harness.worker.input.loaders.loader import Batch
from harness.worker.input.loaders.requests import (
    fill,
    fill_together,
    parse,
    parse_together,
    requests,
)


class _Buffer:
    """Memory that a process and its reader share; samples lie at multiples of the largest."""

    def __init__(self, samples: int, room: int) -> None:
        self._memory = mmap.mmap(-1, max(1, samples * room))  # anonymous: shared with a fork
        self.view = memoryview(self._memory)
        self.lengths = memoryview(mmap.mmap(-1, 8 * samples)).cast("Q")
        self.room = room

    def slot(self, number: int, length: int) -> memoryview:
        return self.view[number * self.room : number * self.room + length]


def _carried(fault: BaseException) -> BaseException:
    """Give what reaches another process: not every fault can be pickled, or made again."""
    try:
        pickle.loads(pickle.dumps(fault))  # noqa: S301 our own bytes
    except Exception:  # noqa: BLE001 whatever its class does then
        return RuntimeError("{}: {}".format(type(fault).__name__, fault))
    return fault


class AsyncLoader:
    """One reader, one or two buffers."""

    keeps_order = True

    def __init__(
        self,
        dataset: Dataset,
        container: Callable[[Dataset], Any],
        *,
        batch_per_rank: int,
        threads: int,
        buffers: int,
        buffer_samples: int,
        process: bool,
    ) -> None:
        if buffer_samples % batch_per_rank:
            raise ValueError(
                "a buffer of {} samples is no whole number of batches of {}".format(
                    buffer_samples, batch_per_rank
                )
            )
        self._dataset = dataset
        self._container = container
        self._batch_per_rank = batch_per_rank
        self._threads = threads
        self._pool: Any = None
        self._size = buffer_samples
        room = int(dataset.manifest["largest"])
        self._buffers = [_Buffer(buffer_samples, room) for _ in range(buffers)]
        self._order: Sequence[int] = ()
        self._given = self._filled = 0
        self._parser: Any = None
        self._reader: Any = None
        kind: Any = multiprocessing.get_context("fork") if process else threading
        self._kind = kind
        self._is_process = process
        self._full = kind.Semaphore(0)
        self._free = kind.Semaphore(0)
        self._go = kind.Semaphore(0)
        self._fault: Optional[BaseException] = None
        self._link: Any = multiprocessing.Pipe() if process else None
        self._start()

    def _start(self) -> None:
        if self._is_process:
            self._reader = self._kind.Process(target=self._serve, daemon=True)
        else:
            self._reader = threading.Thread(target=self._serve, daemon=True)
        self._reader.start()

    def _serve(self) -> None:
        """Fill the buffers of one epoch after the other."""
        if self._threads > 1:
            self._pool = ThreadPoolExecutor(self._threads)
        while True:
            self._go.acquire()
            order = self._link[1].recv() if self._is_process else self._order
            if order is None:
                return
            parts = [order[at : at + self._size] for at in range(0, len(order), self._size)]
            try:
                if self._dataset.has_index:
                    self._fill(parts)
                else:
                    self._parse(parts)
            except BaseException as fault:  # noqa: BLE001 handed to whoever waits for the batch
                self._fault = fault
                if self._is_process:
                    self._link[1].send(_carried(fault))
                self._full.release()
                return

    def _fill(self, parts: Sequence[Sequence[int]]) -> None:
        """Read stretches; where there are two buffers, the second one's beginning is asked for."""
        dataset, is_double = self._dataset, len(self._buffers) > 1
        following = requests(dataset, parts[0])
        for number, samples in enumerate(parts):
            wanted = following
            following = requests(dataset, parts[number + 1]) if samples is not parts[-1] else []
            buffer = self._emptied(number)
            if self._pool is None:
                fill(buffer.slot, wanted, following if is_double else ())
            else:
                fill_together(self._pool, self._threads, buffer.slot, wanted)
            for place, sample in enumerate(samples):
                buffer.lengths[place] = dataset.stretch(sample).length
            self._full.release()

    def _parse(self, parts: Sequence[Sequence[int]]) -> None:
        """Let the format's reader parse sample by sample."""
        if self._parser is None:  # opened here: a map or a lock does not survive a fork
            self._parser = self._container(self._dataset)
        for number, samples in enumerate(parts):
            buffer = self._emptied(number)
            what = (self._dataset, self._parser, buffer.slot, buffer.lengths, samples)
            if self._pool is None:
                parse(*what)
            else:
                parse_together(self._pool, self._threads, *what)
            if samples is parts[-1] and hasattr(self._parser, "rest"):
                self._parser.rest()  # before the last batch is given, and the epoch may end
            self._full.release()

    def _emptied(self, number: int) -> _Buffer:
        """Wait until the samples before were taken."""
        self._free.acquire()
        return self._buffers[number % len(self._buffers)]

    def begin(self, order: Sequence[int]) -> None:
        """Start an epoch; the first batch starts the reading."""
        self._order = order
        self._given = self._filled = 0

    def next(self) -> Batch:
        """Give the next batch out of its buffer."""
        start = self._given * self._batch_per_rank
        within = start % self._size
        if start == 0:
            self._tell(self._order)
            for _ in self._buffers:
                self._free.release()
        elif within == 0:
            self._free.release()  # the last batch of the buffer before was taken and used
        if within == 0:
            self._wait()
            self._filled += 1
        self._given += 1
        samples = self._order[start : start + self._batch_per_rank]
        buffer = self._buffers[(self._filled - 1) % len(self._buffers)]
        data = [
            buffer.slot(place, buffer.lengths[place])
            for place in range(within, within + len(samples))
        ]
        return Batch(samples, data, sum(map(len, data)))

    def _tell(self, order: Optional[Sequence[int]]) -> None:
        while self._free.acquire(False):  # what the last epoch left
            pass
        if self._is_process:
            self._link[0].send(order)
        elif order is None:
            self._order = None  # type: ignore[assignment]
        self._go.release()

    def _wait(self) -> None:
        """Wait until a buffer is full; a reader that was killed fills none."""
        while not self._full.acquire(True, 1.0):
            if not self._reader.is_alive():
                raise ChildProcessError("the process that reads was killed")
        if self._is_process and self._link[0].poll():
            raise self._link[0].recv()
        if self._fault is not None:
            raise self._fault

    def rest(self) -> None:
        """Hold no file open between epochs."""

    def pids(self) -> List[int]:
        """Name the reader, where it is a process."""
        return [self._reader.pid] if self._is_process else []

    def close(self) -> None:
        """End the reader."""
        self._tell(None)
        self._reader.join()
