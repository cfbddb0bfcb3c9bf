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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from harness.data import token_files, user_files
from harness.data.sets import is_finished, read_manifest
from harness.data.sidecars import sums, write_numbers
from harness.errors import UsageError
from harness.worker.input.dataset import (
    INDEX,
    KEYS,
    MANIFEST,
    TARGETS,
    TOKEN_BYTES,
    UINT16,
    VERSION,
)

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
    vocabulary: int = 0
    """Of how many different tokens the tokens of a file are."""

    @property
    def is_text(self) -> bool:
        """Whether they are tokens, which a network says how long a text is of."""
        return self.format == UINT16

    def __str__(self) -> str:
        """Name them in a sentence."""
        kind = {
            "raw": "pictures",
            "tfrecord": "records of TFRecord files",
            "lmdb": "LMDB values",
            UINT16: "tokens",
        }
        return f"{self.samples:,} {kind[self.format]} under {self.root}"


def adopt(path: Path, folder_of_descriptions: Path, *, doing: Callable[[str], None]) -> UserData:
    """Describe somebody's files under ``kept``, or find that they are described there."""
    # A file keeps its name, which may say what it is; what it is a link to may have another.
    place = path.resolve() if path.is_dir() else path.parent.resolve() / path.name
    files = user_files.files(place)
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
        manifest["classes"] if files.format == UINT16 else 0,
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
    if files.format == UINT16:
        _write(folder, _of_tokens(files, doing))
        return
    samples = user_files.samples(files, doing)
    if not samples.lengths:
        raise UsageError(f"{files.root} holds no sample.")
    sizes = sorted(samples.lengths)
    classes = by_folder(files.names) if files.format == "raw" else None
    manifest = {
        **_stated(files, samples.held),
        "samples": len(sizes),
        "sample_bytes": sum(sizes),
        "median": sizes[len(sizes) // 2],
        "largest": sizes[-1],
        "encoding": "as found",
        "dtype": None,
        "classes": 0 if classes is None else len(classes.names),
        "class_names": [] if classes is None else list(classes.names),
    }
    beside: dict[str, array[Any]] = {}
    if samples.index is not None:
        beside[INDEX] = samples.index
    if classes is not None:
        beside[TARGETS] = classes.of
    if samples.keys is not None:
        beside[KEYS] = array("B", _packed(samples.keys))
    _write(folder, manifest, beside)


def _of_tokens(files: user_files.Files, doing: Callable[[str], None]) -> dict[str, Any]:
    """Describe a file of tokens, beside which nothing has to lie."""
    (name,), (stat,) = files.names, files.stats
    found = token_files.held(files.root / name, stat.st_size, doing)
    return {
        **_stated(files, [found.tokens]),
        "samples": found.tokens,
        "sample_bytes": stat.st_size,
        "median": TOKEN_BYTES,
        "largest": TOKEN_BYTES,
        "encoding": "array",
        "dtype": "<u2",
        "classes": found.below,
        "class_names": [],
    }


def _stated(files: user_files.Files, held: Sequence[int]) -> dict[str, Any]:
    """State what holds of all files, whatever is in them."""
    return {
        "version": VERSION,
        "content": CONTENT,
        "title": f"files of {files.root}",
        "format": files.format,
        "seed": None,
        "root": str(files.root),
        "shape": None,
        "scale": 1.0,
        "target_length": 0,
        "made_with": {},
        "files": [
            {
                "name": name,
                "bytes": stat.st_size,
                "samples": count,
                "sha256": None,
                "changed_ns": stat.st_mtime_ns,
            }
            for (name, stat), count in zip(_listed(files), held, strict=True)
        ],
    }


def _write(
    folder: Path, manifest: dict[str, Any], numbers: Mapping[str, array[Any]] | None = None
) -> None:
    """Write a description, with what lies beside it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    try:
        for name, some in (numbers or {}).items():
            write_numbers(beside / name, some)
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
