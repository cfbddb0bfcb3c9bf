"""Keep what each process of a comparison found: a quiet machine may be had in pieces.

One line of JSON a process. What a record holds of the very same code is not measured again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Record:
    """The answers known of one state of the code."""

    file: Path | None
    code: str

    def answer(self, about: list[Any], ask: Callable[[], Any]) -> Any:
        """Give what is known about a process, or ask now and keep it."""
        row = {"about": about, "code": self.code}
        if self.file and self.file.exists():
            for known in map(json.loads, self.file.read_text(encoding="utf-8").splitlines()):
                if row.items() <= known.items():
                    return known["answer"]
        found = ask()
        if self.file:
            with self.file.open("a", encoding="utf-8") as record:
                record.write(json.dumps({**row, "answer": found}) + "\n")
        return found


def digest(paths: Iterable[Path]) -> str:
    """Name a state of files, and of all Python in folders."""
    files = {file for path in paths for file in (path.rglob("*.py") if path.is_dir() else (path,))}
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:12]
