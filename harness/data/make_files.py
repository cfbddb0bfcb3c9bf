"""Make the files of a data set one by one, in as many processes as there are CPUs.

A file is written beside, settled and renamed, so that what has its name is whole whatever crashes.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from harness.child_process import end_with_parent
from harness.data.catalogue import CONTENTS, Content
from harness.data.contents import sample, tokens
from harness.data.sets import DataSetSpec
from harness.file_digest import sha256
from harness.worker.durable import settle, whole_file
from harness.worker.input.evidence.imprints import imprint

_WAITING = 64
"""Files handed to the processes ahead of time."""
_FEW = 4
"""Fewer files are not worth starting processes."""
_SMALL_BYTES = 1 << 20
"""Nor are files that hold less than this together."""
_TABLE_BYTES = 2 << 20
"""About what LevelDB puts into one of its files (options.h: max_file_size)."""

T = TypeVar("T")
P = TypeVar("P")


@dataclass(frozen=True)
class FilePart:
    """One file of a set."""

    name: str
    first: int
    count: int


def writer(spec: DataSetSpec) -> Any:
    """Import the module that writes a set's format."""
    return import_module(f"harness.data.formats.{spec.format}")


def parts(spec: DataSetSpec, content: Content) -> Iterator[FilePart]:
    """Divide a set into files."""
    size, suffix = _held_by_each(spec, content), writer(spec).suffix(content)
    for number, first in enumerate(range(0, spec.samples, size), _first(spec)):
        yield FilePart(_name(number, suffix), first, min(size, spec.samples - first))


def is_part(name: str, spec: DataSetSpec, content: Content) -> bool:
    """Tell whether a set has a file of this name."""
    if name in closing(spec):
        return True
    suffix = writer(spec).suffix(content)
    digits = name.removesuffix(suffix)
    if not (digits.isascii() and digits.isdigit()):
        return False
    number = int(digits)
    is_within = 0 <= (number - _first(spec)) * _held_by_each(spec, content) < spec.samples
    return is_within and name == _name(number, suffix)


def _held_by_each(spec: DataSetSpec, content: Content) -> int:
    several = {
        "together": content.together,
        "shard": content.shard,
        "table": max(1, _TABLE_BYTES // content.median_bytes),
    }
    if spec.per_file is not None:
        several = {holds: min(most, spec.per_file) for holds, most in several.items()}
    return {"one": 1, "all": spec.samples, **several}[writer(spec).HOLDS]


def _first(spec: DataSetSpec) -> int:
    """Give the number in the first file's name: a format may have it read."""
    number: int = getattr(writer(spec), "FIRST", 0)
    return number


def closing(spec: DataSetSpec) -> tuple[str, ...]:
    """Name what a format wants beside its files: nothing, unless they are a database together."""
    return getattr(writer(spec), "CLOSING", ())


def close(spec: DataSetSpec, files: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write what a format wants beside its files, once all of them are there."""
    if closing(spec):
        for name, data in zip(closing(spec), writer(spec).close(records), strict=True):
            with whole_file(files / name, settled=False) as beside:
                beside.write_bytes(data)
                settle(beside)


def _name(number: int, suffix: str) -> str:
    return f"{number:06d}{suffix}"


def is_worth_processes(content: Content, missing: list[FilePart]) -> bool:
    """Tell whether files take longer to make than processes take to start."""
    stored = content.median_bytes * sum(part.count for part in missing)
    return len(missing) >= _FEW and stored >= _SMALL_BYTES


def in_parallel(do: Callable[[P], T], missing: list[P]) -> Iterator[T]:
    """Do something for each part, in their order, a few ahead."""
    workers = min(len(missing), len(os.sched_getaffinity(0)))
    waiting = iter(missing)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=end_with_parent) as pool:
        try:
            running = deque(pool.submit(do, part) for part in islice(waiting, _WAITING))
            while running:
                yield running.popleft().result()
                running.extend(pool.submit(do, part) for part in islice(waiting, 1))
        finally:
            pool.shutdown(cancel_futures=True)


def write_part(spec: DataSetSpec, files: Path, part: FilePart) -> dict[str, Any]:
    """Make one file; give what is noted of it."""
    content = CONTENTS[spec.content]
    if content.is_text:
        return _write_tokens(spec, content, files, part)
    made = [sample(content, spec.seed, part.first + number) for number in range(part.count)]
    path = files / part.name
    with whole_file(path, settled=False) as beside:
        places = writer(spec).write(beside, made, part.first, content)
        settle(beside)  # its name is settled with all others, at the end
        digest = sha256(beside)
    return {
        "name": part.name,
        "bytes": path.stat().st_size,
        "samples": part.count,
        "sha256": digest,
        "places": places,
        "sizes": [len(one.data) for one in made],
        "targets": [one.target for one in made],
        "imprints": [imprint(memoryview(one.data)) for one in made],
    }


def _write_tokens(
    spec: DataSetSpec, content: Content, files: Path, part: FilePart
) -> dict[str, Any]:
    """Make the one file of a set of tokens, beside which nothing is kept of each."""
    path = files / part.name
    with whole_file(path, settled=False) as beside:
        writer(spec).write(beside, tokens(content, spec.seed, part.count))
        settle(beside)
        digest = sha256(beside)
    nothing: dict[str, Any] = {"places": None, "sizes": [], "targets": [], "imprints": []}
    size = path.stat().st_size
    return {"name": part.name, "bytes": size, "samples": part.count, "sha256": digest, **nothing}


def bytes_of(records: Iterable[dict[str, Any]]) -> int:
    """Add up what files take."""
    return sum(record["bytes"] for record in records)
