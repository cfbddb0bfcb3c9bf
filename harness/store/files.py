"""Write files atomically: after a crash a reader finds a file whole or not at all."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import FullDisk, RunError
from harness.store import json_text
from harness.worker.durable import whole_file

_FULL = {errno.ENOSPC: "the disk is full.", errno.EDQUOT: "your disk quota is used up."}
_REASONS = {
    errno.EACCES: "you may not write here. Start from another folder, or ask for the right.",
    errno.EPERM: "you may not write here. Start from another folder, or ask for the right.",
    errno.EROFS: "this file system is read-only. Start from another folder.",
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an OSError into a message that a user can act on."""
    try:
        yield
    except OSError as problem:
        if problem.errno in _FULL:
            raise FullDisk(f"{path}: {_FULL[problem.errno]}") from problem
        reason = _REASONS.get(problem.errno or 0, f"{problem.strerror}.")
        raise RunError(f"{path}: {reason}") from problem


@contextmanager
def once_there_is_space(then: str) -> Iterator[None]:
    """Say what to do after a full disk, where that is not to try the same again."""
    try:
        yield
    except FullDisk as problem:
        raise FullDisk(problem.what, then) from problem


def write_whole(path: Path, content: str | bytes, *, settled: bool = True) -> None:
    """Write a file beside, flush it to the disk, then give it its name.

    What exists and is no regular file (a device, a pipe) is written through, never replaced. What
    is cheap to make again need not be ``settled``: it is whole, but a power cut may lose it.
    """
    data = content.encode() if isinstance(content, str) else content
    with explained(path):
        if path.exists() and not path.is_file():
            with path.open("wb") as through:
                through.write(data)
            return
        with whole_file(path, settled=settled) as beside:
            beside.write_bytes(data)


def write_json(path: Path, value: Any) -> None:
    """Write a value as a JSON file, whole or not at all."""
    write_whole(path, json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file; name it if it is damaged."""
    try:
        return json_text.parse(path.read_bytes())
    except FileNotFoundError:
        raise RunError(f"{path}: there is no such file.") from None
    except ValueError as problem:
        raise RunError(f"{path}: this file is damaged ({problem}).") from None
