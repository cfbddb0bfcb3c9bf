"""Turn samples into few large requests, and read them with the next ones under way.

Samples that lie side by side in a file are read together, each to a place of its own. A request is
at most 4 MiB, as large as parallel file systems send at once; while one is read the kernel is asked
for the next ones, so that a single thread keeps a device as busy as several threads would.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from harness.worker.input.dataset import Dataset

MOST_BYTES = 4 << 20
_AHEAD_BYTES = 16 << 20
_AHEAD_REQUESTS = 64
"""Each may hold a file open."""

Slot = Callable[[int, int], memoryview]
"""Give the memory of a sample by its place in the buffer and its length."""


class Part(NamedTuple):
    """A stretch of a sample: where in the buffer it goes."""

    slot: int
    start: int
    length: int


class Request(NamedTuple):
    """Neighbouring bytes of one file, and what they are."""

    path: str
    offset: int
    parts: Tuple[Part, ...]
    length: int


def requests(dataset: Dataset, samples: Sequence[int]) -> List[Request]:
    """Join samples that lie side by side, in the order in which they are stored."""
    most = os.sysconf("SC_IOV_MAX")
    made: List[Request] = []
    path, first, length = "", 0, 0
    parts: List[Part] = []
    for sample, slot in sorted((sample, slot) for slot, sample in enumerate(samples)):
        own, offset, size = dataset.stretch(sample)
        start = 0
        while start < size:
            is_next = own == path and offset + start == first + length
            if not is_next or length >= MOST_BYTES or len(parts) == most:
                if parts:
                    made.append(Request(path, first, tuple(parts), length))
                path, first, length, parts = own, offset + start, 0, []
            taken = min(size - start, MOST_BYTES - length)
            parts.append(Part(slot, start, taken))
            start, length = start + taken, length + taken
    if parts:
        made.append(Request(path, first, tuple(parts), length))
    return made


def fill(slot: Slot, wanted: Sequence[Request], following: Sequence[Request] = ()) -> None:
    """Read every request; the next ones, and the first of those that follow, are under way."""
    opened: Dict[str, int] = {}
    asked, ahead = 0, 0
    every = [*wanted, *following]
    try:
        for number, request in enumerate(wanted):
            while asked < len(every) and (
                asked <= number or (ahead < _AHEAD_BYTES and asked - number < _AHEAD_REQUESTS)
            ):
                _ask(every[asked], opened)
                ahead += every[asked].length
                asked += 1
            _read(opened[request.path], request, slot)
            ahead -= request.length
            if number + 1 == len(every) or every[number + 1].path != request.path:
                os.close(opened.pop(request.path))
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def fill_together(pool: Any, threads: int, slot: Slot, wanted: Sequence[Request]) -> None:
    """Read with several threads, each its own stretch of the requests.

    Nothing is asked for beforehand: several readers keep a device busy, and what the kernel reads
    ahead by itself comes in larger pages, which cost less to copy.
    """
    share = -(-len(wanted) // threads)
    parts = [wanted[at : at + share] for at in range(0, len(wanted), share)]
    for _ in pool.map(lambda part: _read_all(slot, part), parts):
        pass


def _read_all(slot: Slot, wanted: Sequence[Request]) -> None:
    path, descriptor = "", -1
    try:
        for request in wanted:
            if request.path != path:
                if descriptor >= 0:
                    os.close(descriptor)
                path, descriptor = request.path, -1
                descriptor = os.open(path, os.O_RDONLY)
            _read(descriptor, request, slot)
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _ask(request: Request, opened: Dict[str, int]) -> None:
    if request.path not in opened:
        opened[request.path] = os.open(request.path, os.O_RDONLY)
    _advise(opened[request.path], request.offset, request.length)


def _read(descriptor: int, request: Request, slot: Slot) -> None:
    places = [slot(part.slot, part.start + part.length)[part.start :] for part in request.parts]
    done = os.preadv(descriptor, places, request.offset)
    while done < request.length:  # a signal came, or the file ends
        skipped, rest = 0, []
        for place in places:
            rest.append(place[min(len(place), max(0, done - skipped)) :])
            skipped += len(place)
        more = os.preadv(descriptor, [one for one in rest if len(one)], request.offset + done)
        if not more:
            raise EOFError(
                "{} ends before its sample does; `bakeoff data check`".format(request.path)
            )
        done += more


def parse_together(
    pool: Any,
    threads: int,
    dataset: Dataset,
    container: Any,
    slot: Slot,
    lengths: memoryview,
    samples: Sequence[int],
) -> None:
    """Parse with several threads, each its own stretch of the samples as they are stored."""

    def read(part: Sequence[Tuple[int, int]]) -> None:
        room = int(dataset.manifest["largest"])
        for sample, place in part:
            lengths[place] = container.read(sample, slot(place, room))

    stored = sorted((sample, place) for place, sample in enumerate(samples))
    share = -(-len(stored) // threads)
    for _ in pool.map(read, [stored[at : at + share] for at in range(0, len(stored), share)]):
        pass


def parse(
    dataset: Dataset, container: Any, slot: Slot, lengths: memoryview, samples: Sequence[int]
) -> None:
    """Read samples through their format's reader, in the order in which they are stored."""
    stored = sorted((sample, place) for place, sample in enumerate(samples))
    files = _files(dataset, [sample for sample, _ in stored])
    last = -1
    room = int(dataset.manifest["largest"])
    for sample, place in stored:
        file, _ = dataset.place(sample)
        if file != last:
            last = file
            next(files, None)
        lengths[place] = container.read(sample, slot(place, room))


def _files(dataset: Dataset, stored: Sequence[int]) -> Iterator[None]:
    """Ask for the files ahead of the one that is read; each step is one file further."""
    numbers = list(dict.fromkeys(dataset.place(sample)[0] for sample in stored))
    sizes = [int(dataset.manifest["files"][number]["bytes"]) for number in numbers]
    asked, ahead = 1, 0
    for number in range(len(numbers)):
        while asked < len(numbers) and ahead + sizes[asked] <= max(_AHEAD_BYTES, sizes[asked]):
            descriptor = os.open(dataset.paths[numbers[asked]], os.O_RDONLY)
            for start in range(0, sizes[asked], MOST_BYTES):
                _advise(descriptor, start, min(MOST_BYTES, sizes[asked] - start))
            os.close(descriptor)
            ahead += sizes[asked]
            asked += 1
        yield
        if number + 1 < len(numbers):
            ahead -= sizes[number + 1]


def _advise(descriptor: int, offset: int, length: int) -> None:
    os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_WILLNEED)
