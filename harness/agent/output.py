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
from harness.worker.last_words import last_message
from harness.worker.redaction.redact import redact_text, secrets_of
from harness.worker.redaction.whole_lines import (
    WholeLines,
    border_after,
    border_before,
    left_out_note,
)

_CHUNK = 1 << 16


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
        self._lines = WholeLines()
        self._head_left = limit // 2
        self._tail_limit = limit
        """What the head does not take is the tail's."""
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._file: int | None = None
        self._dropped = 0
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
        self._keep(self._lines.feed(data))
        return True

    @property
    def dropped(self) -> int:
        """How many bytes are not in the file."""
        return self._dropped + self._lines.left_out

    def last_message(self) -> str:
        """Give what was said last: from memory or, where the stream is short, from its file."""
        text = b"".join(self._tail)
        if not text and self._file is not None:
            with open(self._path, "rb") as file:  # noqa: PTH123  an agent starts fast
                text = file.read()
        said = redact_text((text + self._lines.held).decode(errors="replace"), self._known)
        return last_message(said)

    def _keep(self, lines: bytes) -> None:
        """Keep what ends at a border; where the head has no room for all, its end is one too."""
        if self._head_left > 0 and lines:
            fits = len(lines)
            if fits > self._head_left:
                fits, self._head_left = border_before(lines, self._head_left), 0
            self._write(lines[:fits])
            self._head_left -= fits
            self._tail_limit -= fits
            lines = lines[fits:]
        if lines:
            self._tail.append(lines)
            self._tail_bytes += len(lines)
            while self._tail_bytes - len(self._tail[0]) >= self._tail_limit:
                gone = len(self._tail.popleft())
                self._tail_bytes -= gone
                self._dropped += gone

    def _write(self, lines: bytes) -> None:
        """Write lines without their secrets."""
        if not lines:
            return
        text = lines.decode(errors="surrogateescape")
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
                self._keep(self._lines.feed(data))
        os.close(self.source)
        self._keep(self._lines.end())
        if self._tail:
            surplus = max(0, self._tail_bytes - self._tail_limit)
            first = self._tail.popleft()
            begin = border_after(first, surplus)
            self._dropped += begin
            if self._dropped:
                self._write(left_out_note(self._dropped))
            self._write(first[begin:] + b"".join(self._tail))
        if self._file is not None:
            os.close(self._file)
