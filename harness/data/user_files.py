"""Find the samples in a user's own files: pictures, TFRecord files, an LMDB, a file of tokens.

Nothing is written there, and of the samples no more is read than says where they lie: of pictures
nothing, of a TFRecord file the twelve bytes before each record, of an LMDB its keys.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from harness.data import token_files
from harness.data.lmdb_keys import keys_and_lengths
from harness.errors import UsageError
from harness.worker.input import records
from harness.worker.input.dataset import UINT16

PICTURES = (
    *(".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp"),
    *(".ppm", ".pgm", ".tif", ".tiff"),
)
_LMDB_MAGIC = struct.pack("<I", 0xBEEFC0DE)
"""At the 17th byte, behind the header of the first page (lmdb's mdb.c: MDB_MAGIC, PAGEHDRSZ)."""
_GZIP_MAGIC = b"\x1f\x8b"
_KNOWN = (
    "pictures in folders (an ImageFolder), TFRecord files, an LMDB, or a file of tokens that ends "
    f"in {token_files.ENDING} and is named itself"
)


@dataclass(frozen=True)
class Files:
    """Files of one kind, in the order of their names."""

    root: Path
    format: str
    names: tuple[str, ...]
    """Relative to the root."""
    stats: tuple[os.stat_result, ...]


@dataclass(frozen=True)
class Samples:
    """What the files hold."""

    held: Sequence[int]
    """How many samples each file has."""
    lengths: array[int]
    index: array[int] | None
    """Per sample its file, offset and length; None where it is no plain stretch of a file."""
    keys: Sequence[bytes] | None
    """What an LMDB knows its samples by."""


def files(path: Path) -> Files:
    """Recognise the format of a user's file or folder; refuse any other."""
    if not path.exists():
        raise UsageError(f"there is nothing at {path}.")
    if path.is_file():
        names, root = [path.name], path.parent
    else:
        names, root = sorted(_walked(path)), path
        if "data.mdb" in names:
            names = ["data.mdb"]
    pictures = tuple(name for name in names if name.lower().endswith(PICTURES))
    if pictures:
        return _stated(root, "raw", pictures)
    for folder in dict.fromkeys((root / name).parent for name in names):
        _refuse_leveldb(folder)
    kinds = {name: _kind(root / name) for name in names}
    for wanted in ("lmdb", "tfrecord"):
        own = tuple(name for name, kind in kinds.items() if kind == wanted)
        if wanted == "lmdb" and len(own) > 1:
            raise UsageError(f"{path} holds {len(own)} LMDBs ({own[0]}, {own[1]} …): name one.")
        if own:
            return _stated(root, wanted, own)
    if path.is_file() and path.name.endswith(token_files.ENDING):
        return _stated(root, UINT16, (path.name,))
    if "gzip" in kinds.values():
        raise UsageError(
            f"{path} holds compressed files; only TFRecord files written without compression say "
            "where a record lies."
        )
    raise UsageError(f"{path} holds none of what is read here: {_KNOWN}.")


def samples(found: Files, doing: Callable[[str], None]) -> Samples:
    """Find every sample of files whose format is known."""
    if found.format == "lmdb":
        return _of_lmdb(found)
    if found.format == "tfrecord":
        return _of_records(found, doing)
    lengths = array("Q", (one.st_size for one in found.stats))
    index = array("Q", (part for one in enumerate(lengths) for part in (one[0], 0, one[1])))
    return Samples([1] * len(lengths), lengths, index, None)


def _walked(root: Path) -> Iterator[str]:
    """Name every file under a folder; folders may be links, as many collections' are."""
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(root, followlinks=True, onerror=_unreadable):
        there = Path(folder).stat()
        if (there.st_dev, there.st_ino) in seen:  # a link that leads back
            folders.clear()
            continue
        seen.add((there.st_dev, there.st_ino))
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = Path(folder).relative_to(root)
        yield from (str(inside / name) for name in names if not name.startswith("."))


def _unreadable(problem: OSError) -> NoReturn:
    raise UsageError(f"{problem.filename}: {problem.strerror}.")


def _refuse_leveldb(folder: Path) -> None:
    """Say what to do with a LevelDB: its last writes lie in a log, and its tables are compressed.

    Only its library merges the one and unpacks the other, and what is read here would be timed.
    """
    current = folder / "CURRENT"
    if not (current.is_file() and any(folder.glob("MANIFEST-*"))):
        return
    logs = [one.name for one in sorted(folder.glob("*.log")) if one.stat().st_size]
    unmerged = f", with writes that are still in its log ({', '.join(logs)})" if logs else ""
    raise UsageError(
        f"{folder} is a LevelDB{unmerged}. One of your own is not read here: its tables may be "
        "compressed, and unpacking them would be timed. Write what it holds into an LMDB "
        "(of pictures: `convert_imageset --backend lmdb`), or read one that is made here of the "
        "same messages: `bakeoff data create tiny-pictures --format leveldb`."
    )


def _kind(path: Path) -> str:
    """Recognise a file by its first bytes; names may be wrong."""
    try:
        with path.open("rb") as file:
            first = file.read(20)
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror}.") from None
    if first[16:] == _LMDB_MAGIC:
        return "lmdb"
    if first.startswith(_GZIP_MAGIC):
        return "gzip"
    try:
        records.data_length(first[: records.HEAD])
    except (ValueError, struct.error):
        return "other"
    return "tfrecord"


def _stated(root: Path, form: str, names: tuple[str, ...]) -> Files:
    stats = []
    for name in names:
        try:
            stat = (root / name).stat()
        except OSError as problem:
            raise UsageError(f"{root / name}: {problem.strerror}.") from None
        if not stat.st_size:
            raise UsageError(f"{root / name} is empty.")
        if not os.access(root / name, os.R_OK):
            raise UsageError(f"{root / name} may not be read by you.")
        stats.append(stat)
    return Files(root, form, names, tuple(stats))


def _of_records(found: Files, doing: Callable[[str], None]) -> Samples:
    held, lengths, index = [], array("Q"), array("Q")
    for number, name in enumerate(found.names):
        doing(f"{found.root}: {number} of {len(found.names)} files")
        before = len(lengths)
        for offset, length in _records(found.root / name, found.stats[number].st_size):
            lengths.append(length)
            index.extend((number, offset, length))
        held.append(len(lengths) - before)
    return Samples(held, lengths, index, None)


def _records(path: Path, size: int) -> Iterator[tuple[int, int]]:
    """Give the place of each record's data."""
    with path.open("rb", buffering=0) as file:
        at, number = 0, 0
        while at < size:
            head = os.pread(file.fileno(), records.HEAD, at)
            try:
                length = records.data_length(head)
            except (ValueError, struct.error):
                raise UsageError(f"{path}: record {number} is damaged, at byte {at}.") from None
            yield at + records.HEAD, length
            at += records.HEAD + length + records.FOOT
            if at > size:
                raise UsageError(f"{path} ends in the middle of record {number}.")
            number += 1


def _of_lmdb(found: Files) -> Samples:
    (name,) = found.names
    keys, lengths = keys_and_lengths(found.root / name)
    return Samples([len(keys)], lengths, None, keys)
