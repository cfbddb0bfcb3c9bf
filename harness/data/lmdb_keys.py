"""List an LMDB's keys in a process of its own: LMDB trusts its files, and ends with a damaged one.

``python -m harness.data.lmdb_keys FILE`` writes each key's length (u16), its value's (u64) and the
key. A page that is not there is SIGBUS, one that is none an assertion; either ends that process.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from harness.errors import UsageError
from harness.worker.input.lmdb_pages import why_cut_short

_HEAD = struct.Struct("<HQ")


def keys_and_lengths(path: Path) -> tuple[list[bytes], array[int]]:
    """Give the keys of an LMDB in their order, and how long their values are."""
    _library()
    if (cut := why_cut_short(str(path))) is not None:
        raise UsageError(f"{path} is no LMDB that can be read: {cut}")
    keys, lengths = [], array("Q")
    with subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for key, length in _records(process.stdout):
            keys.append(key)
            lengths.append(length)
        problem = process.stderr.read().decode(errors="replace").strip()
    if process.returncode < 0:
        problem = f"it is damaged; its library died of signal {-process.returncode}"
    if process.returncode:
        raise UsageError(f"{path} is no LMDB that can be read: {problem}")
    return keys, lengths


def _records(pipe: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    while len(head := pipe.read(_HEAD.size)) == _HEAD.size:
        size, length = _HEAD.unpack(head)
        yield pipe.read(size), length


def _library() -> Any:
    try:
        import lmdb
    except ImportError:
        raise UsageError("an LMDB is looked into with lmdb: pip install lmdb") from None
    return lmdb


def _list(path: str) -> None:
    """Write what there is; notes that people keep there (``__len__``, ``__keys__``) are none."""
    library = _library()
    try:
        with (
            library.open(path, subdir=False, readonly=True, lock=False) as map_,
            map_.begin(buffers=True) as transaction,
        ):
            for key, value in transaction.cursor():
                if bytes(key[:2]) != b"__":
                    sys.stdout.buffer.write(_HEAD.pack(len(key), len(value)) + bytes(key))
    except library.Error as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    _list(sys.argv[1])
