"""Adopt a user's own files: describe them in a folder of ours and leave them alone.

What lies in that folder is what ``harness/worker/input/dataset.py`` reads; its manifest names the
place of the files. Its name follows from where they lie, what they are called, how large they are
and when they changed, so that it describes them for good: changed files are adopted anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from harness.data import user_files
from harness.data.sets import is_finished, read_manifest
from harness.data.sidecars import sums, write_numbers
from harness.errors import UsageError
from harness.worker.input.dataset import INDEX, KEYS, MANIFEST, TARGETS, VERSION

CONTENT = "own"
_DIGEST = 12
_DESCRIPTION = "3"
"""Of what describes files: 2 has the classes of pictures, 3 sums of what lies beside."""


@dataclass(frozen=True)
class UserData:
    """A user's own files, described."""

    folder: Path
    """What describes them."""
    root: Path
    """Where they lie."""
    format: str
    samples: int
    largest: int
    digest: str
    """Of names and sizes: the same files elsewhere are the same data."""
    classes: tuple[str, ...] = ()
    """Folders that tell pictures apart, sorted; empty where nothing does."""
    endings: tuple[str, ...] = ()
    """How the pictures' names end, in small letters."""

    def __str__(self) -> str:
        """Name them in a sentence."""
        kind = {"raw": "pictures", "tfrecord": "records of TFRecord files", "lmdb": "LMDB values"}
        return f"{self.samples:,} {kind[self.format]} under {self.root}"


def adopt(path: Path, folder_of_descriptions: Path, *, doing: Callable[[str], None]) -> UserData:
    """Describe somebody's files under ``kept``, or find that they are described there."""
    files = user_files.files(path.resolve())
    folder = folder_of_descriptions / f"{files.root.name or 'root'}-{_stamp(files)}"
    if not is_finished(folder):
        _describe(files, folder, doing)
    manifest = read_manifest(folder)
    return UserData(
        folder,
        files.root,
        files.format,
        manifest["samples"],
        manifest["largest"],
        _digest(f"{name}\0{stat.st_size}" for name, stat in _listed(files)),
        tuple(manifest["class_names"]),
        tuple(sorted({Path(name).suffix.lower() for name in files.names} - {""})),
    )


def changed(folder: Path, root: Path) -> str | None:
    """Say how adopted files differ from what was described; None if they do not."""
    manifest = read_manifest(folder)
    for one in manifest["files"]:
        try:
            stat = (root / one["name"]).stat()
        except OSError as problem:
            return f"{root / one['name']}: {problem.strerror}"
        except ValueError:  # half a letter, or a zero
            return f"{root} has no file that is called {one['name']!r}"
        if (stat.st_size, stat.st_mtime_ns) != (one["bytes"], one["changed_ns"]):
            return f"{root / one['name']} has changed"
    return None


def _stamp(files: user_files.Files) -> str:
    facts = (f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}" for name, stat in _listed(files))
    return _digest([_DESCRIPTION, str(files.root), *facts])


def _listed(files: user_files.Files) -> Any:
    return zip(files.names, files.stats, strict=True)


def _digest(facts: Any) -> str:
    whole = hashlib.sha256()
    for fact in facts:
        whole.update(os.fsencode(fact) + b"\n")
    return whole.hexdigest()[:_DIGEST]


def _describe(files: user_files.Files, folder: Path, doing: Callable[[str], None]) -> None:
    """Write index, keys and, last, the manifest; the folder appears whole."""
    doing(f"{files.root}: {len(files.names)} {files.format} files")
    samples = user_files.samples(files, doing)
    if not samples.lengths:
        raise UsageError(f"{files.root} holds no sample.")
    sizes = sorted(samples.lengths)
    classes = by_folder(files.names) if files.format == "raw" else None
    manifest = {
        "version": VERSION,
        "content": CONTENT,
        "title": f"files of {files.root}",
        "format": files.format,
        "seed": None,
        "root": str(files.root),
        "samples": len(sizes),
        "sample_bytes": sum(sizes),
        "median": sizes[len(sizes) // 2],
        "largest": sizes[-1],
        "encoding": "as found",
        "dtype": None,
        "shape": None,
        "scale": 1.0,
        "classes": 0 if classes is None else len(classes.names),
        "class_names": [] if classes is None else list(classes.names),
        "target_length": 0,
        "made_with": {},
        "files": [
            {
                "name": name,
                "bytes": stat.st_size,
                "samples": held,
                "sha256": None,
                "changed_ns": stat.st_mtime_ns,
            }
            for (name, stat), held in zip(_listed(files), samples.held, strict=True)
        ],
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    try:
        if samples.index is not None:
            write_numbers(beside / INDEX, samples.index)
        if classes is not None:
            write_numbers(beside / TARGETS, classes.of)
        if samples.keys is not None:
            write_numbers(beside / KEYS, array("B", _packed(samples.keys)))
        manifest["sums"] = sums(beside)
        (beside / MANIFEST).write_text(json.dumps(manifest) + "\n", encoding="utf-8")
        if not is_finished(folder):  # it is damaged, or an older version's: our own words alone
            shutil.rmtree(folder, ignore_errors=True)
        beside.rename(folder)
    except OSError:
        if not is_finished(folder):  # or somebody else was faster
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _packed(keys: Any) -> bytes:
    return b"".join(len(key).to_bytes(2, "little") + key for key in keys)


_FEWEST = 2


@dataclass(frozen=True)
class Classes:
    """The classes of some pictures, and which of them each one has."""

    names: tuple[str, ...]
    of: array[int]


def by_folder(pictures: Sequence[str]) -> Classes | None:
    """Read classes off the pictures' names, relative to the root; None where there are none.

    As in torchvision's ImageFolder a class is a folder right under the root, whatever lies between
    it and the picture, and classes are numbered in the order of their names.
    """
    folders = [PurePath(name).parts[0] for name in pictures if len(PurePath(name).parts) > 1]
    names = tuple(sorted(set(folders)))
    if len(folders) < len(pictures) or len(names) < _FEWEST:
        return None  # a picture beside the folders belongs to none; one class is nothing to tell
    numbers = {name: number for number, name in enumerate(names)}
    return Classes(names, array("q", (numbers[folder] for folder in folders)))
