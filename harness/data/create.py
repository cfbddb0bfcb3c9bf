"""Make a data set, going on where an earlier attempt stopped.

    FOLDER/made.jsonl      what was made so far: first what the set is, then a line a file; gone
                           when the set is finished. Who makes or removes a set has it locked

The manifest comes last.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from array import array
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from harness.data.catalogue import CONTENTS, FORMATS, Content
from harness.data.disk_space import expected_bytes, refuse_to_fill
from harness.data.lock import claimed
from harness.data.make_files import (
    bytes_of,
    close,
    closing,
    in_parallel,
    is_worth_processes,
    parts,
    write_part,
    writer,
)
from harness.data.sets import MADE, DataSetSpec, began, has, is_finished, read_manifest
from harness.data.sidecars import sums, write_numbers
from harness.errors import BakeoffError, UsageError, nearest
from harness.file_digest import sha256
from harness.worker.durable import settle, whole_file
from harness.worker.input.dataset import FILES, IMPRINTS, INDEX, MANIFEST, TARGETS, VERSION

Record = dict[str, Any]

_LOGGED = {
    "name": str,
    "bytes": int,
    "samples": int,
    "sha256": str,
    "places": list | None,
    "sizes": list,
    "targets": list,
    "imprints": list,
}


def checked(spec: DataSetSpec) -> Content:
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
        hint = "" if content.is_text else "; raw, tar, tfrecord and lmdb hold any bytes"
        raise UsageError(f"{why}{hint}.")
    return content


def _plain(files: Path) -> None:
    files.mkdir(parents=True, exist_ok=True)


def create(
    spec: DataSetSpec,
    folder: Path,
    *,
    doing: Callable[[str], None],
    lay: Callable[[Path], None] = _plain,
) -> dict[str, Any]:
    """Make a set, or go on with it; give its manifest. What is finished is left as it is.

    ``lay`` makes the folder that the files lie in, once it is known that they fit.
    """
    content = checked(spec)
    if is_finished(folder):
        return read_manifest(folder)
    known = _logged(folder)
    expected = expected_bytes(spec, content, writer(spec).HOLDS)
    refuse_to_fill(folder, max(0, expected - bytes_of(known.values())))
    _make_room(folder, lay)
    with claimed(folder) as log:
        if is_finished(folder):  # by somebody who was faster
            (folder / MADE).unlink(missing_ok=True)
            return read_manifest(folder)
        made = _kept(folder, doing)
        try:
            return _made(spec, content, folder, made, log, doing)
        except OSError as problem:
            if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise BakeoffError(
                f"{folder}: the disk is full; {len(made)} files are kept. Free some space and "
                "repeat the command to go on, or `bakeoff data remove` it."
            ) from problem


def _make_room(folder: Path, lay: Callable[[Path], None]) -> None:
    """Make the folders; leave none behind where that is refused."""
    new = [one for one in (folder / FILES, folder, *folder.parents) if not one.exists()]
    try:
        lay(folder / FILES)
    except BaseException as problem:
        for one in new:
            with suppress(OSError):
                one.rmdir()
        if not isinstance(problem, OSError):
            raise
        raise BakeoffError(f"{folder} cannot be made: {problem.strerror}.") from None


def _made(
    spec: DataSetSpec,
    content: Content,
    folder: Path,
    made: dict[str, Record],
    log: TextIO,
    doing: Callable[[str], None],
) -> dict[str, Any]:
    if _is_torn(folder / MADE):
        log.write("\n")
    if began(folder) is None:
        _note(log, {"version": VERSION, **vars(spec)})
    (folder / MANIFEST).unlink(missing_ok=True)  # an older version's, whose files are replaced now
    wanted = list(parts(spec, content))
    missing = [part for part in wanted if part.name not in made]
    each = in_parallel if is_worth_processes(content, missing) else map
    for record in each(partial(write_part, spec, folder / FILES), missing):
        made[record["name"]] = record
        _note(log, record)
        doing(f"{spec.name}: {len(made)} of {len(wanted)} files")
    return _finish(spec, content, folder, [made[part.name] for part in wanted])


def _is_torn(path: Path) -> bool:
    """Tell whether a crash cut the last line short."""
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
        return file.read() not in (b"", b"\n")


def _note(log: TextIO, record: Record) -> None:
    log.write(json.dumps(record) + "\n")
    log.flush()


def _logged(folder: Path) -> dict[str, Record]:
    """Read what an earlier attempt says it made."""
    found: dict[str, Record] = {}
    with suppress(FileNotFoundError, NotADirectoryError):
        for line in (folder / MADE).read_text("utf-8", "replace").splitlines():
            with suppress(ValueError, RecursionError):  # the line that a crash cut short
                record = json.loads(line)
                if has(record, _LOGGED):
                    found[record["name"]] = record
    return found


def _kept(folder: Path, doing: Callable[[str], None]) -> dict[str, Record]:
    """Give what of it is really there, every byte."""
    records: dict[str, Record] = {}
    logged = _logged(folder)
    for number, (name, record) in enumerate(logged.items(), 1):
        doing(f"{folder.name}: checking {number} of {len(logged)} files made before")
        path = folder / FILES / name
        if path.is_file() and sha256(path) == record["sha256"]:
            records[name] = record
    return records


def _write_beside(content: Content, folder: Path, records: list[dict[str, Any]]) -> None:
    """Write index, targets and imprints."""
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
    imprints = (one for record in records for one in record["imprints"])
    write_numbers(folder / IMPRINTS, array("Q", imprints))


def _finish(
    spec: DataSetSpec, content: Content, folder: Path, records: list[dict[str, Any]]
) -> dict[str, Any]:
    """Write what lies beside the files and, last, the manifest; the files are durable already."""
    close(spec, folder / FILES, records)
    settle(folder / FILES)
    if content.is_text:
        sizes = [content.median_bytes]
    else:
        _write_beside(content, folder, records)
        sizes = sorted(size for record in records for size in record["sizes"])
    keys = ("name", "bytes", "samples", "sha256")
    manifest = {
        "version": VERSION,
        "content": spec.content,
        "title": content.title,
        "format": spec.format,
        "seed": spec.seed,
        "samples": spec.samples,
        "sample_bytes": sizes[0] * spec.samples if content.is_text else sum(sizes),
        "median": sizes[len(sizes) // 2],
        "largest": sizes[-1],
        "encoding": "array" if content.is_array else "jpeg",
        "dtype": content.dtype,
        "shape": list(content.shape) if content.shape else None,
        "scale": content.scale,
        "classes": content.classes,
        "target_length": content.target_length,
        "made_with": _made_with(content),
        "files": [{name: record[name] for name in keys} for record in records],
        "sums": sums(folder, closing(spec)),
    }
    with whole_file(folder / MANIFEST) as beside:
        beside.write_text(json.dumps(manifest) + "\n", encoding="utf-8")
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
