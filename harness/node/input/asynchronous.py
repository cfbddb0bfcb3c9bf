"""This file is the asynchronous reader: one thread or process that reads many samples at once.

After Lee et al. (2021): an I/O-dedicated thread of each rank fills one or two buffers in shared
memory while the rank computes. Samples of one file that lie side by side are read in one request,
and each lands at its place in the order, which was permuted by file and within the buffer. With one
buffer reading waits until the last batch of the buffer was taken; with two it goes on.

The whole memory is taken beforehand: buffers × samples in one × bytes of the largest sample.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from harness.node.input.dataset import Dataset
from harness.node.input.loader import Batch


class Span(NamedTuple):
    """Neighbouring samples of one file, and where in the buffer each goes."""

    path: str
    offset: int
    lengths: Tuple[int, ...]
    slots: Tuple[int, ...]


def spans(dataset: Dataset, samples: Sequence[int]) -> List[Span]:
    """Join samples that lie side by side, in the order in which they are stored."""
    slots = {sample: slot for slot, sample in enumerate(samples)}
    found: List[Tuple[str, int, List[int], List[int]]] = []
    end = -1
    for sample in sorted(slots):
        path, offset, length = dataset.stretch(sample)
        if found and found[-1][0] == path and offset == end:
            found[-1][2].append(length)
            found[-1][3].append(slots[sample])
        else:
            found.append((path, offset, [length], [slots[sample]]))
        end = offset + length
    return [Span(path, at, tuple(lengths), tuple(where)) for path, at, lengths, where in found]


class _Buffer:
    """Memory that a process and its reader share; samples lie at multiples of the largest."""

    def __init__(self, samples: int, room: int) -> None:
        self._memory = mmap.mmap(-1, max(1, samples * room))  # anonymous: shared with a fork
        self.view = memoryview(self._memory)
        self.room = room

    def slot(self, number: int, length: int) -> memoryview:
        return self.view[number * self.room : number * self.room + length]


def fill(buffer: _Buffer, wanted: Sequence[Span]) -> None:
    """Read every span, each with one request that scatters its samples to their slots."""
    opened: Dict[str, int] = {}
    most = os.sysconf("SC_IOV_MAX")
    try:
        for span in wanted:
            if span.path not in opened:
                opened[span.path] = os.open(span.path, os.O_RDONLY)
            at = span.offset
            for first in range(0, len(span.slots), most):
                lengths = span.lengths[first : first + most]
                places = [
                    buffer.slot(slot, length)
                    for slot, length in zip(span.slots[first : first + most], lengths)
                ]
                _scatter(opened[span.path], places, at, span.path)
                at += sum(lengths)
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def _scatter(descriptor: int, places: List[memoryview], offset: int, path: str) -> None:
    total = sum(map(len, places))
    done = os.preadv(descriptor, places, offset)
    while done < total:  # the kernel stops at 2 GiB, or in the middle of a signal
        skipped, rest = 0, []
        for place in places:
            start = min(len(place), max(0, done - skipped))
            rest.append(place[start:])
            skipped += len(place)
        more = os.preadv(descriptor, [one for one in rest if len(one)], offset + done)
        if not more:
            raise EOFError("{} ends before its sample does; `bakeoff data check`".format(path))
        done += more


class AsyncLoader:
    """One reader, one or two buffers."""

    keeps_order = True

    def __init__(
        self, dataset: Dataset, *, batch: int, buffers: int, buffer_samples: int, process: bool
    ) -> None:
        if buffer_samples % batch:
            raise ValueError(
                "a buffer of {} samples is no whole number of batches of {}".format(
                    buffer_samples, batch
                )
            )
        self._dataset = dataset
        self._batch = batch
        self._size = buffer_samples
        room = int(dataset.manifest["largest"])
        self._buffers = [_Buffer(buffer_samples, room) for _ in range(buffers)]
        self._order: Sequence[int] = ()
        self._given = self._filled = 0
        self._reader: Any = None
        kind: Any = multiprocessing.get_context("fork") if process else threading
        self._kind = kind
        self._is_process = process
        self._full = kind.Semaphore(0)
        self._free = kind.Semaphore(0)
        self._go = kind.Semaphore(0)
        self._fault: Optional[BaseException] = None
        self._link: Any = multiprocessing.Pipe() if process else None
        self._plan: List[List[Span]] = []
        self._start()

    def _start(self) -> None:
        if self._is_process:
            self._reader = self._kind.Process(target=self._serve, daemon=True)
        else:
            self._reader = threading.Thread(target=self._serve, daemon=True)
        self._reader.start()

    def _serve(self) -> None:
        """Fill the buffers of one epoch after the other."""
        self._dataset.index()
        while True:
            self._go.acquire()
            order = self._link[1].recv() if self._is_process else self._order
            if order is None:
                return
            try:
                for number, start in enumerate(range(0, len(order), self._size)):
                    self._free.acquire()
                    wanted = spans(self._dataset, order[start : start + self._size])
                    fill(self._buffers[number % len(self._buffers)], wanted)
                    self._full.release()
            except BaseException as fault:  # noqa: BLE001 handed to whoever waits for the batch
                self._fault = fault
                if self._is_process:
                    self._link[1].send(fault)
                self._full.release()
                return

    def begin(self, order: Sequence[int]) -> None:
        """Start an epoch; the first batch starts the reading."""
        self._order = order
        self._given = self._filled = 0

    def next(self) -> Batch:
        """Give the next batch out of its buffer."""
        start = self._given * self._batch
        within = start % self._size
        if start == 0:
            self._tell(self._order)
            for _ in self._buffers:
                self._free.release()
        elif within == 0:
            self._free.release()  # the last batch of the buffer before was taken and used
        if within == 0:
            self._full.acquire()
            self._raise_fault()
            self._filled += 1
        self._given += 1
        samples = self._order[start : start + self._batch]
        buffer = self._buffers[(self._filled - 1) % len(self._buffers)]
        data = [
            buffer.slot(within + place, self._dataset.stretch(sample).length)
            for place, sample in enumerate(samples)
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

    def _raise_fault(self) -> None:
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
