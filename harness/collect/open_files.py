"""Small kernel files held open: reading them so costs a sixth of opening each time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.errors import Unavailable
from harness.store.samples.samples_format import DENIED, LOST, NOT_READ, UNSUPPORTED, Channel

_USUAL = 1 << 12


class OpenFile:
    """One file of /proc or /sys, read from its beginning each time."""

    _descriptor = -1

    def __init__(self, path: Path | str, *, many: bool = False) -> None:
        """Open it; ``many``: the kernel hands such a list out page by page."""
        self.path = str(path)
        self._many = many
        self._room = _USUAL
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes:
        """Read the whole file."""
        data = os.pread(self._descriptor, self._room, 0)
        if not self._many and len(data) < self._room:
            return data
        chunk = data
        while chunk:
            chunk = os.pread(self._descriptor, self._room, len(data))
            data += chunk
        # Next time in one go, without memory for the longest file there might be.
        self._room = max(self._room, 2 * len(data))
        return data

    def number(self) -> int:
        """Read a file that holds one number; a gap code if it cannot be read now."""
        try:
            return int(os.pread(self._descriptor, 64, 0))
        except (OSError, ValueError) as problem:
            return gap(problem)

    def close(self) -> None:
        """Close it, once."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        """Leave no descriptor behind when an opening failed half-way."""
        self.close()


def hold(path: Path, *, many: bool = False) -> OpenFile:
    """Open a file that a source cannot do without; say why if that fails."""
    try:
        return OpenFile(path, many=many)
    except OSError as problem:
        raise Unavailable(f"{path}: {problem.strerror}") from None


def held(paths: Sequence[Path], what: str) -> list[OpenFile]:
    """Open all of these that can be; say why if there is none."""
    found, reasons = [], []
    for path in paths:
        try:
            found.append(OpenFile(path))
        except OSError as problem:
            reasons.append(f"{path}: {problem.strerror}")
    if not found:
        raise Unavailable(reasons[0] if reasons else f"this machine shows no {what}")
    return found


class NumberFiles:
    """Files of one number each, as many as can be opened, read together."""

    lasts = True

    def __init__(self, found: Iterable[tuple[Path, Channel]], what: str) -> None:
        """Open them; say why if there is none."""
        self._files: list[OpenFile] = []
        self.channels: list[Channel] = []
        reason = f"this machine shows no {what}"
        for path, channel in found:
            try:
                self._files.append(OpenFile(path))
            except OSError as problem:
                reason = f"{path}: {problem.strerror}"
                continue
            self.channels.append(channel)
        if not self._files:
            raise Unavailable(reason)

    def read(self) -> list[int]:
        """Read every file."""
        return [file.number() for file in self._files]

    def close(self) -> None:
        """Close what was opened."""
        for file in self._files:
            file.close()


def number_after(text: bytes, key: bytes) -> int:
    """Find one number in a list of lines, with or without its unit."""
    at = text.find(key)
    if at < 0:
        return UNSUPPORTED
    begin = at + len(key)
    return int(text[begin : text.index(b"\n", begin)].removesuffix(b" kB"))


def gap(problem: Exception) -> int:
    """Say by a code why nothing was read."""
    if isinstance(problem, PermissionError):
        return DENIED
    if isinstance(problem, ProcessLookupError | FileNotFoundError):
        return LOST
    return UNSUPPORTED if isinstance(problem, OSError) else NOT_READ
