"""Keep what a rank prints: the beginning in its file, the end in memory until it ends.

A pipe that the agent drains costs nothing while a rank is silent, can never fill a disk, and never
blocks the rank for longer than the agent takes to read.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from harness.agent.protocol import STARTER, RankCommand, TrialCommand
from harness.store.layout import TrialPaths
from harness.worker.redaction.redact import redact_text, secrets_of

_CHUNK = 1 << 16
_KEY_BEGINS, _KEY_ENDS = b"-----BEGIN ", b"-----END "


def streams(trial: TrialCommand, command: RankCommand) -> tuple[Capture, Capture]:
    """Make pipes for the stdout and stderr of a rank, or of the command that starts ranks."""
    rank, known = command.rank, secrets_of(command.env)
    paths = TrialPaths(Path(trial.directory))
    out, err = paths.stdout(rank), paths.stderr(rank)
    if rank == STARTER:
        out, err = paths.starter_output, paths.starter_errors
    most = trial.output_bytes
    return Capture(str(out), most, known), Capture(str(err), most, known)


class Capture:
    """One stream of one rank; its file appears with the first line, and holds no secret."""

    def __init__(self, path: str, limit: int, known: Sequence[str] = ()) -> None:
        self._path = path
        self._known = known
        self._begun = b""
        """What waits for the end of its line, or of a key's block."""
        self._head_left = limit // 2
        self._tail_limit = limit - limit // 2
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._file: int | None = None
        self.dropped = 0
        self.source, self.sink = os.pipe()
        os.set_blocking(self.source, False)

    def started(self) -> None:
        """Close this process's copy of the write end, which the rank now holds."""
        os.close(self.sink)
        self.sink = -1

    def drain(self) -> bool:
        """Read what is available now; False once every writer has closed the pipe."""
        try:
            data = os.read(self.source, _CHUNK)
        except BlockingIOError:
            return True
        if not data:
            return False
        self._keep(data)
        return True

    def last_line(self) -> str:
        """Give the last line: from memory or, where the stream is short, from its file."""
        text = b"".join(self._tail)
        if not text and self._file is not None:
            with open(self._path, "rb") as file:  # noqa: PTH123  an agent starts fast
                text = file.read()
        said = redact_text((text + self._begun).decode(errors="replace"), self._known)
        lines = said.strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def _keep(self, data: bytes) -> None:
        if self._head_left > 0:
            self._write(data[: self._head_left])
            data, self._head_left = data[self._head_left :], self._head_left - len(data)
        if data:
            self._tail.append(data)
            self._tail_bytes += len(data)
            while self._tail_bytes - len(self._tail[0]) >= self._tail_limit:
                gone = len(self._tail.popleft())
                self._tail_bytes -= gone
                self.dropped += gone

    def _write(self, data: bytes, *, whole: bool = False) -> None:
        """Write complete lines without their secrets; all of it, once it is ``whole``."""
        data = self._begun + data
        cut = len(data)
        if not whole and cut <= _CHUNK:
            cut, block = data.rfind(b"\n") + 1, data.rfind(_KEY_BEGINS)
            if 0 <= block < cut and data.find(_KEY_ENDS, block) < 0:
                cut = block
        data, self._begun = data[:cut], data[cut:]
        if not data:
            return
        text = data.decode(errors="surrogateescape")
        data = redact_text(text, self._known).encode(errors="surrogateescape")
        with suppress(OSError):  # a full disk must not end the agent: the host will say so
            if self._file is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file = os.open(self._path, flags, 0o644)
            os.write(self._file, data)

    def close(self) -> None:
        """Read the rest, then write the stream's end and how many bytes were dropped before it."""
        if self.sink >= 0:
            os.close(self.sink)
        with suppress(BlockingIOError):
            while data := os.read(self.source, _CHUNK):
                self._keep(data)
        os.close(self.source)
        if self._tail:
            tail = b"".join(self._tail)
            surplus = max(0, len(tail) - self._tail_limit)
            self.dropped += surplus
            if self.dropped:
                self._write(b"", whole=True)
                self._write(f"\n[bakeoff: {self.dropped} bytes left out here]\n".encode())
            self._write(tail[surplus:])
        self._write(b"", whole=True)
        if self._file is not None:
            os.close(self._file)
