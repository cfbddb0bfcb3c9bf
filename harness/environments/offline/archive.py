"""Write an archive and read one as foreign input: a tar of plain files, the manifest first.

What is read is bounded by what the manifest states, and the manifest by a size of its own.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from harness.environments import cache
from harness.environments.offline import install
from harness.environments.offline.install import MANIFEST, Refused
from harness.errors import BakeoffError, UsageError
from harness.store.files import explained
from harness.units import decimal_size
from harness.worker.durable import whole_file

_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1 << 20
_LONGEST_NAME = 4096
_MOST_TEXT_BYTES = 1_000_000


def write(folder: Path, out: Path, manifest: Mapping[str, Any]) -> None:
    """Write a folder's files as one archive; the same files make the same bytes."""
    text = json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n"
    (folder / MANIFEST).write_bytes(text)
    with (
        explained(out),
        whole_file(out) as beside,
        tarfile.open(beside, "w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for name in (MANIFEST, *sorted(manifest["files"])):
            archive.add(folder / name, f"{out.stem}/{name}", filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry


@dataclass(frozen=True)
class Opened:
    """An archive whose files lie in a folder, each held to its hash."""

    folder: Path
    manifest: Mapping[str, Any]

    def below(self, kind: str) -> dict[str, Any]:
        """Give what is stated of the files in one of its folders, by their names."""
        files = self.manifest["files"]
        return {name: files[name] for name in sorted(files) if name.startswith(f"{kind}/")}

    def text(self, name: str) -> str:
        """Read one of its texts."""
        facts = self.manifest["files"].get(name)
        if facts is None or facts["bytes"] > _MOST_TEXT_BYTES:
            raise Refused(f"it holds no file {name!r}, or one that is too large")
        try:
            return (self.folder / name).read_text("utf-8")
        except ValueError:
            raise Refused(f"{name} is no text") from None


@contextmanager
def opened(archive: Path) -> Iterator[Opened]:
    """Open an archive, or a folder that tar has made of one."""
    try:
        if archive.is_dir():
            yield Opened(archive.resolve(), install.checked(str(archive.resolve())))
            return
        with cache.scratch() as folder:
            with explained(archive), archive.open("rb") as file:
                manifest = _unpacked(file, folder)
            yield Opened(folder, manifest)
    except Refused as problem:
        raise BakeoffError(
            f"{archive}: {str(problem).rstrip('.')}. Nothing was installed."
        ) from None


def _unpacked(file: BinaryIO, folder: Path) -> dict[str, Any]:
    name, size = _header(file)
    if name != MANIFEST or size > install.MOST_MANIFEST_BYTES:
        raise Refused("it is no archive of `bakeoff pack`")
    manifest: dict[str, Any] = install.read_manifest(_exactly(file, size))
    _skip_padding(file, size)
    waiting: dict[str, Any] = dict(manifest["files"])
    needed = sum(facts["bytes"] for facts in waiting.values())
    if needed > shutil.disk_usage(folder).free:
        raise UsageError(
            f"{cache.home()} has no room for {decimal_size(needed)}. BAKEOFF_HOME names another."
        )
    while waiting:
        name, size = _header(file)
        facts = waiting.pop(name, None)
        if facts is None or facts["bytes"] != size:
            raise Refused(f"{name!r} is not what {MANIFEST} says")
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if _copied(file, path, size) != facts["sha256"]:
            raise Refused(f"{name} is not the file that was packed (its SHA-256 differs)")
        _skip_padding(file, size)
    return manifest


def _header(file: BinaryIO) -> tuple[str, int]:
    """Read an entry's name below the archive's folder, and its size; refuse all but plain files."""
    entry = _entry(file)
    name = entry.name
    if entry.type == tarfile.GNUTYPE_LONGNAME:
        if entry.size > _LONGEST_NAME:
            raise Refused("a name is too long")
        name = _exactly(file, entry.size).rstrip(b"\0").decode("utf-8", "replace")
        _skip_padding(file, entry.size)
        entry = _entry(file)
    if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or entry.size < 0:
        raise Refused(f"{name!r} is no plain file")
    return name.partition("/")[2], entry.size


def _entry(file: BinaryIO) -> tarfile.TarInfo:
    try:
        return tarfile.TarInfo.frombuf(_exactly(file, _BLOCK), "utf-8", "replace")
    except tarfile.HeaderError:
        raise Refused("it is no archive of `bakeoff pack`, or damaged") from None


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise Refused("it is cut short")
    return data


def _skip_padding(file: BinaryIO, size: int) -> None:
    _exactly(file, -size % _BLOCK)


def _copied(file: BinaryIO, path: Path, size: int) -> str:
    digest = hashlib.sha256()
    with explained(path), path.open("xb") as written:
        while size:
            data = _exactly(file, min(size, _CHUNK))
            digest.update(data)
            written.write(data)
            size -= len(data)
    return digest.hexdigest()
