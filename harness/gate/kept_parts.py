"""Parts of examinations on the user's disk, by a hash of everything that could change them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from harness.gate.result import GatePart, Result, read, record, with_log
from harness.store.files import explained, read_json, write_json, write_whole
from harness.store.gate_results import SEALED, is_sealed, sealed

_A_RESULT_BYTES = 1 << 16


def writable(folder: Path, stack: ExitStack) -> Path:
    """Give a folder back, or where nothing can be written to it one for this time only.

    A home that is read-only or full costs what was kept, not the examination.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_A_RESULT_BYTES))
    except OSError:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bakeoff-gate-")))
    return folder


def with_kept_log(result: Result, file: Path) -> Result:
    """Keep the log of an examination that failed."""
    if not result.log:
        return result
    with explained(file):
        file.parent.mkdir(exist_ok=True)
    write_whole(file, result.log)
    return with_log(result, str(file))


class NotKept(Exception):
    """Say that a part has to be examined."""


class KeptParts:
    """What is kept in a folder; what was changed by hand is examined anew.

    ``log`` gives what was printed by an examination that failed.
    """

    def __init__(self, folder: Path, log: Callable[[], str]) -> None:
        self._folder = folder
        self._log = log
        self.is_edited = False
        """Whether what was kept of this cell, or of its reference, had been changed by hand."""
        self.examines = True
        """Whether a part that is not stored is examined; else ``NotKept`` is raised."""

    def part(self, key: str, examine: Callable[[], GatePart]) -> GatePart:
        """Give a part that is stored, or examine and store it; one that failed keeps its log."""
        file = self._folder / "results" / f"{key}.json"
        if file.is_file():
            kept = read_json(file)
            if is_sealed(kept):
                return read(kept[SEALED])
            self.is_edited = True
        if not self.examines:
            raise NotKept
        part = examine()
        if part.has_failed:
            return replace(part, log=self._log())
        with explained(file):
            file.parent.mkdir(exist_ok=True)
        write_json(file, sealed(record(part)))
        return part
