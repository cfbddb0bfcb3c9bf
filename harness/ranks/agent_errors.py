"""Write what an agent and what it is reached through complain of, without secrets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from threading import Thread
from typing import IO

from harness.worker.redaction.redact import redact_text, secrets_of
from harness.worker.redaction.whole_lines import WholeLines

_CHUNK = 1 << 16
_PATIENCE_S = 2.0
"""For the rest, once the agent has gone: what it started may have the pipe open still."""


class ErrorLog:
    """One agent's standard error, on its way into a file."""

    def __init__(self, pipe: IO[bytes], log: IO[bytes]) -> None:
        self._pipe, self._log = pipe, log
        self._known = set(secrets_of(os.environ))
        self._thread = Thread(target=self._keep, daemon=True)
        self._thread.start()

    def know(self, environments: Iterable[Mapping[str, str]]) -> None:
        """Hide what these variables hide, too."""
        self._known = self._known.union(*map(secrets_of, environments))

    def finish(self) -> None:
        """Wait until all is written."""
        self._thread.join(_PATIENCE_S)

    def _keep(self) -> None:
        lines = WholeLines()
        with self._pipe, self._log:
            while data := os.read(self._pipe.fileno(), _CHUNK):
                self._write(lines.feed(data))
            self._write(lines.end())

    def _write(self, data: bytes) -> None:
        if data:
            known = sorted(self._known, key=len, reverse=True)
            text = redact_text(data.decode(errors="surrogateescape"), known)
            with suppress(OSError):  # a full disk ends no trial that can do without
                self._log.write(text.encode(errors="surrogateescape"))
                self._log.flush()
