"""Remove a data set: what making it wrote, and nothing else.

The set is locked first. The log then says again what it is, and the manifest goes before anything
else: a half-removed set is an unfinished one, which can be removed again or made anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from harness.data.catalogue import CONTENTS, FORMATS
from harness.data.lock import claimed
from harness.data.make_files import is_part
from harness.data.sets import MADE, DataSetSpec, began, has
from harness.data.user_data import CONTENT
from harness.errors import BakeoffError
from harness.worker.durable import settle
from harness.worker.input.dataset import (
    FILES,
    IMPRINTS,
    INDEX,
    KEYS,
    MANIFEST,
    TARGETS,
    VERSION,
)

_SAID = ("version", "content", "format", "samples", "seed")
_BESIDE = (INDEX, TARGETS, IMPRINTS, KEYS, f".{MANIFEST}.new")


@dataclass(frozen=True)
class Removed:
    """What became of a set."""

    bytes: int
    left: tuple[str, ...]
    """What lies in its folder and is not the set's, so that the folder is there still."""


def remove(folder: Path) -> Removed:
    """Delete a set; leave alone, and name, what creating it did not write."""
    recorded = None if folder.is_symlink() else _recorded(folder)
    if recorded is None:
        raise BakeoffError(f"{folder} is no data set; nothing was removed.")
    with claimed(folder) as log:
        if began(folder) is None:
            log.write("\n" + json.dumps({name: recorded[name] for name in _SAID}) + "\n")
            log.flush()
            settle(folder / MADE)
        freed = _deleted(folder / MANIFEST)
        freed += sum(_deleted(path) for path in _own(folder, recorded))
        _drop(folder / FILES)
        freed += _deleted(folder / MADE)
        _drop(folder)
    left = sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    )
    return Removed(freed, tuple(left))


def _drop(emptied: Path) -> None:
    """Remove a folder, unless something is in it."""
    with suppress(OSError):
        emptied.rmdir()


def _recorded(folder: Path) -> Mapping[str, Any] | None:
    """Read what a set is: in its manifest, or in the log of what was made so far."""
    try:
        if (folder / MANIFEST).is_file():
            recorded = json.loads((folder / MANIFEST).read_text("utf-8"))
        else:
            recorded = began(folder) or _named(folder)
    except (OSError, ValueError, RecursionError):
        return None
    is_ours = (
        isinstance(recorded, dict)
        and has(recorded, {"samples": int, "seed": int | None})
        and recorded.get("version") in range(1, VERSION + 1)
        and recorded.get("content") in (*CONTENTS, CONTENT)
        and recorded.get("format") in FORMATS
    )
    return recorded if is_ours else None


def _named(folder: Path) -> Mapping[str, Any] | None:
    """Know a set whose log a crash spoilt by its name, if only its files are in its folder."""
    if not (folder / MADE).is_file():
        return None
    for content, form in product(CONTENTS, FORMATS):
        found = re.fullmatch(rf"{content}-{form}-([1-9]\d*)(?:-s(\d+))?", folder.name)
        if found is None:
            continue
        spec = DataSetSpec(content, form, int(found[1]), int(found[2] or 1))
        recorded = {"version": VERSION, **vars(spec)}
        own = {*_own(folder, recorded), folder / FILES, folder / MADE}
        return recorded if own.issuperset(folder.rglob("*")) else None
    return None


def _own(folder: Path, recorded: Mapping[str, Any]) -> Iterator[Path]:
    """Give the files that were written; of somebody's own files only their description was."""
    yield from (folder / name for name in _BESIDE)
    files = folder / FILES
    if recorded["content"] == CONTENT or files.is_symlink() or not files.is_dir():
        return
    spec = DataSetSpec(
        recorded["content"], recorded["format"], recorded["samples"], recorded["seed"]
    )
    content = CONTENTS[spec.content]
    for path in sorted(files.iterdir()):
        if is_part(path.name.removeprefix(".").removesuffix(".new"), spec, content):
            yield path


def _deleted(path: Path) -> int:
    """Delete a file, if it is one; give the bytes that it took."""
    if path.is_symlink() or not path.is_file():
        return 0
    size = path.stat().st_size
    path.unlink()
    return size
