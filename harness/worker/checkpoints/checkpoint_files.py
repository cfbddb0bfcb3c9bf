"""Keep a checkpoint on a tier so that it is there whole or not at all.

    PLACE/.step-20.writing/      being written; after a crash worth nothing
    PLACE/step-20/               complete: every file durable, renamed last
    PLACE/step-20/manifest.json  size and SHA-256 of each file
    PLACE/.step-20.dropped/      being removed

The order is what makes it safe: files, their fsync, the manifest, its fsync, the folder's fsync,
the rename, the fsync of the folder above. What a torn write, a lost page or a lying disk leaves
behind fails its hash, and the next older checkpoint is taken.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import threading
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, List, Mapping, Optional

from harness.worker.durable import settle

MANIFEST = "manifest.json"
VERSION = 1  # 1: first
CHUNK = 1 << 22
_COMPLETE = re.compile(r"^step-(\d+)$")
_REMAINS = re.compile(r"^\.step-\d+\.(writing|dropped)$")


@dataclass(frozen=True)
class File:
    """One file of a checkpoint."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Kept:
    """A complete checkpoint."""

    step: int
    folder: str
    files: Mapping[str, File]
    """By their path inside the folder."""

    @property
    def bytes(self) -> int:
        """Add up its files."""
        return sum(file.bytes for file in self.files.values())

    def paths(self) -> List[str]:
        """Give the path of each file, the manifest's not."""
        return [os.path.join(self.folder, name) for name in self.files]


def begin(place: str, step: int) -> str:
    """Make the empty folder that a checkpoint is written into."""
    folder = os.path.join(place, ".step-{}.writing".format(step))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def seal(place: str, step: int) -> Kept:
    """Make durable what was written, say what it is, and let it appear under its name."""
    folder = begun(place, step)
    syncing = _Syncing(list(_inside(folder)))
    files = {os.path.relpath(path, folder): digest(path) for path in _inside(folder)}
    syncing.join()
    return appear(place, step, files)


def begun(place: str, step: int) -> str:
    """Name the folder that ``begin`` made."""
    return os.path.join(place, ".step-{}.writing".format(step))


def appear(place: str, step: int, files: Mapping[str, File]) -> Kept:
    """Write the manifest beside durable files, and rename their folder."""
    folder, target = begun(place, step), os.path.join(place, "step-{}".format(step))
    raw = {"version": VERSION, "step": step, "files": {n: vars(f) for n, f in files.items()}}
    manifest = os.path.join(folder, MANIFEST)
    with open(manifest, "w", encoding="utf-8") as file:
        json.dump(raw, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    for inner in sorted({os.path.dirname(os.path.join(folder, name)) for name in files} | {folder}):
        settle(inner)
    if os.path.isdir(target):  # the same step, saved by an earlier process
        drop(Kept(step, target, {}))
    os.rename(folder, target)
    settle(place)
    return Kept(step, target, files)


def complete(place: str) -> List[Kept]:
    """List what is complete on a tier, the newest first; reads manifests and sizes, no contents."""
    found = []
    for name in _names(place):
        match = _COMPLETE.match(name)
        kept = _read(os.path.join(place, name), int(match.group(1))) if match else None
        if kept is not None:
            found.append(kept)
    return sorted(found, key=lambda kept: kept.step, reverse=True)


def newest(places: Iterable[str]) -> Optional[Kept]:
    """Find the newest checkpoint that is what its manifest says, on any tier; the first named wins.

    Every byte is read for it, which is what a restart owes itself.
    """
    found = [kept for place in places for kept in complete(place)]
    for kept in sorted(found, key=lambda kept: kept.step, reverse=True):
        if is_true(kept):
            return kept
    return None


def is_true(kept: Kept) -> bool:
    """Tell whether every file still has the hash that its manifest states."""
    try:
        return all(
            digest(os.path.join(kept.folder, name)) == file for name, file in kept.files.items()
        )
    except OSError:  # unreadable is not true either
        return False


def drop(kept: Kept) -> None:
    """Remove a checkpoint; at no moment does half of one stand under its name."""
    place, name = os.path.split(kept.folder)
    aside = os.path.join(place, ".{}.dropped".format(name))
    shutil.rmtree(aside, ignore_errors=True)
    os.rename(kept.folder, aside)
    shutil.rmtree(aside)


def sweep(place: str) -> None:
    """Remove what a process that was cut off had begun to write or to remove."""
    for name in _names(place):
        if _REMAINS.match(name):
            shutil.rmtree(os.path.join(place, name))


def digest(path: str) -> File:
    """Hash a file as it is read back."""
    whole, size = hashlib.sha256(), 0
    with open(path, "rb", buffering=0) as file:
        for chunk in chunks(file):
            whole.update(chunk)
            size += len(chunk)
    return File(size, whole.hexdigest())


def chunks(file: Any) -> Iterator[memoryview]:
    """Read a file piece by piece into one buffer."""
    buffer = memoryview(bytearray(CHUNK))
    while True:
        count = file.readinto(buffer)
        if not count:
            return
        yield buffer[:count]


class _Syncing:
    """Files on their way to the disk, while the same files are hashed from memory."""

    def __init__(self, paths: List[str]) -> None:
        self._paths = paths
        self._fault: Optional[Exception] = None
        self._thread = threading.Thread(target=self._sync, daemon=True)
        self._thread.start()

    def _sync(self) -> None:
        try:
            for path in self._paths:
                with open(path, "rb+", buffering=0) as file:
                    os.fsync(file.fileno())
        except Exception as fault:  # noqa: BLE001 handed to whoever joins
            self._fault = fault

    def join(self) -> None:
        """Wait until all are there; raise what the disk said."""
        self._thread.join()
        if self._fault is not None:
            raise self._fault


def _inside(folder: str) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        for name in sorted(names):
            yield os.path.join(parent, name)


def _names(place: str) -> List[str]:
    return os.listdir(place) if os.path.isdir(place) else []


def _read(folder: str, step: int) -> Optional[Kept]:
    """Read a manifest; None where it or a file is missing, torn or of another size."""
    try:
        with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
            raw = json.load(file)
        files = {name: File(**told) for name, told in raw["files"].items()}
        sizes = {name: os.path.getsize(os.path.join(folder, name)) for name in files}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if raw.get("version") != VERSION or raw.get("step") != step:
        return None
    if any(sizes[name] != file.bytes for name, file in files.items()):
        return None
    return Kept(step, folder, files)
