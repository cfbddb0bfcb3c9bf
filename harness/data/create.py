"""This file makes a data set: in parallel, file by file, going on where an earlier attempt stopped.

    FOLDER/made.jsonl      what was made so far, a line a file; gone when the set is finished

A file is written beside and renamed, so that what has its name is whole. The manifest comes last.
"""

from __future__ import annotations

import errno
import hashlib
import json
import multiprocessing
import os
import shutil
import sys
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from harness.data.catalogue import CONTENTS, FORMATS, Content
from harness.data.contents import sample
from harness.data.numbers import write_numbers
from harness.data.sets import MADE, Spec, is_finished
from harness.errors import BakeoffError, UsageError, nearest
from harness.node.durable import settle
from harness.node.input.dataset import FILES, INDEX, MANIFEST, TARGETS, VERSION

_KEPT_FREE = 1 << 30
"""What creating leaves of a disk at least, or a twentieth of a small one: others live there too."""
_WAITING = 64
"""Files handed to the processes ahead of time."""


@dataclass(frozen=True)
class Part:
    """One file of a set."""

    name: str
    first: int
    count: int


def checked(spec: Spec) -> Content:
    """Give a set's content; refuse what cannot be made."""
    if spec.content not in CONTENTS:
        hint = nearest(spec.content, CONTENTS)
        raise UsageError(
            f"nothing is called '{spec.content}'.{hint}\n    Known: {', '.join(CONTENTS)}."
        )
    if spec.format not in FORMATS:
        hint = nearest(spec.format, FORMATS)
        raise UsageError(f"'{spec.format}' is no format.{hint}\n    Known: {', '.join(FORMATS)}.")
    content = CONTENTS[spec.content]
    if (why := content.fits(spec.format)) is not None:
        raise UsageError(f"{why}; raw, tar, tfrecord and lmdb hold any bytes.")
    return content


def expected_bytes(spec: Spec) -> int:
    """Guess how much a set takes: an eighth more than its samples, for what surrounds them."""
    content = checked(spec)
    return spec.samples * max(4096 if content.together == 1 else 0, content.median_bytes) * 9 // 8


def create(spec: Spec, folder: Path, *, doing: Callable[[str], None]) -> dict[str, Any]:
    """Make a set, or go on with it; give its manifest. What is finished is left as it is."""
    content = checked(spec)
    if is_finished(folder):
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text("utf-8"))
        return manifest
    files = folder / FILES
    files.mkdir(parents=True, exist_ok=True)
    made = _made(folder, files)
    _refuse_to_fill(spec, folder, sum(record["bytes"] for record in made.values()))
    parts = list(_parts(spec, content))
    missing = [part for part in parts if part.name not in made]
    try:
        with (folder / MADE).open("a", encoding="utf-8") as log:
            for record in _in_parallel(spec, files, missing):
                made[record["name"]] = record
                log.write(json.dumps(record) + "\n")
                log.flush()
                doing(f"{spec.name}: {len(made)} of {len(parts)} files")
        return _finish(spec, content, folder, [made[part.name] for part in parts])
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise BakeoffError(
            f"{folder}: the disk is full; {len(made)} of {len(parts)} files are kept. Free some "
            "space and repeat the command to go on, or `bakeoff data remove` it."
        ) from problem


def _parts(spec: Spec, content: Content) -> Iterator[Part]:
    module = _format(spec.format)
    each = {"one": 1, "together": content.together, "shard": content.shard, "all": spec.samples}
    size = each[module.HOLDS]
    for number, first in enumerate(range(0, spec.samples, size)):
        name = f"{number:06d}{module.suffix(content)}"
        yield Part(name, first, min(size, spec.samples - first))


def _made(folder: Path, files: Path) -> dict[str, dict[str, Any]]:
    """Read what an earlier attempt made, as far as it is really there."""
    found: dict[str, dict[str, Any]] = {}
    try:
        lines = (folder / MADE).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return {}
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:  # the line that a crash cut short
            continue
        path = files / record["name"]
        if path.is_file() and path.stat().st_size == record["bytes"]:
            found[record["name"]] = record
    return found


def _refuse_to_fill(spec: Spec, folder: Path, made_bytes: int) -> None:
    needed = max(0, expected_bytes(spec) - made_bytes)
    disk = shutil.disk_usage(folder)
    kept, free = min(_KEPT_FREE, disk.total // 20), disk.free
    if needed + kept > free:
        raise BakeoffError(
            f"{folder} would take about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free, "
            f"of which {kept / 1e9:.1f} GB stay so. Ask for fewer --samples or another tier."
        )


def _in_parallel(spec: Spec, files: Path, missing: list[Part]) -> Iterator[dict[str, Any]]:
    """Write files in as many processes as there are CPUs; few are not worth starting any."""
    if len(missing) < 4:
        for part in missing:
            yield write_part(spec, files, part)
        return
    workers = min(len(missing), len(os.sched_getaffinity(0)))
    waiting = iter(missing)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        running = {pool.submit(write_part, spec, files, part) for part in islice(waiting, _WAITING)}
        try:
            while running:
                ended = next(as_completed(running))
                running.discard(ended)
                yield ended.result()
                following = next(waiting, None)
                if following is not None:
                    running.add(pool.submit(write_part, spec, files, following))
        finally:
            pool.shutdown(cancel_futures=True)


def write_part(spec: Spec, files: Path, part: Part) -> dict[str, Any]:
    """Make one file; give what the manifest says of it."""
    content = CONTENTS[spec.content]
    made = [sample(content, spec.seed, part.first + number) for number in range(part.count)]
    path, beside = files / part.name, files / f".{part.name}.new"
    try:
        places = _format(spec.format).write(beside, made, part.first, content)
        with beside.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = beside.stat().st_size
        beside.rename(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return {
        "name": part.name,
        "bytes": size,
        "samples": part.count,
        "sha256": digest,
        "places": places,
        "sizes": [len(one.data) for one in made],
        "targets": [one.target for one in made],
    }


def _finish(
    spec: Spec, content: Content, folder: Path, records: list[dict[str, Any]]
) -> dict[str, Any]:
    """Make everything durable, write index, targets and, last, the manifest."""
    for record in records:
        settle(folder / FILES / record["name"])
    if all(record["places"] is not None for record in records):
        stretches = (
            number
            for file, record in enumerate(records)
            for offset, length in record["places"]
            for number in (file, offset, length)
        )
        write_numbers(folder / INDEX, array("Q", stretches))
    targets = [target for record in records for target in record["targets"]]
    if content.target_length:
        write_numbers(folder / TARGETS, array("f", (one for some in targets for one in some)))
    else:
        write_numbers(folder / TARGETS, array("q", targets))
    sizes = sorted(size for record in records for size in record["sizes"])
    kept = ("name", "bytes", "samples", "sha256")
    manifest = {
        "version": VERSION,
        "content": spec.content,
        "title": content.title,
        "format": spec.format,
        "seed": spec.seed,
        "samples": spec.samples,
        "sample_bytes": sum(sizes),
        "median": sizes[len(sizes) // 2],
        "largest": sizes[-1],
        "encoding": "array" if content.is_array else "jpeg",
        "dtype": content.dtype,
        "shape": list(content.shape) if content.is_array else None,
        "scale": content.scale,
        "classes": content.classes,
        "target_length": content.target_length,
        "made_with": _made_with(content),
        "files": [{name: record[name] for name in kept} for record in records],
    }
    beside = folder / f".{MANIFEST}.new"
    beside.write_text(json.dumps(manifest) + "\n", encoding="utf-8")
    settle(beside)
    beside.rename(folder / MANIFEST)
    (folder / MADE).unlink(missing_ok=True)
    settle(folder)
    return manifest


def _made_with(content: Content) -> dict[str, str]:
    import numpy as np

    versions = {"numpy": np.__version__, "python": sys.version.split()[0]}
    if not content.is_array:
        from PIL import __version__, features

        versions |= {"pillow": __version__, "libjpeg": str(features.version("jpg"))}
    return versions


def _format(name: str) -> Any:
    return import_module(f"harness.data.formats.{name}")
