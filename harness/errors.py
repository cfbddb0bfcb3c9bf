"""Define every error that a user can cause, and how its text reads.

BakeoffError                 one message a person can act on; exit code 1
├── UsageError               the command line or a file is wrong; exit code 2
│   └── FaultyFile           all faults of one file together
├── Unavailable              something this needs is not on this machine
└── RunError                 a run directory is locked, damaged or not comparable
    ├── DamagedFile          one file of a run cannot be read; the rest can
    └── FullDisk             a disk or a quota is used up; what was finished is kept
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class BakeoffError(Exception):
    """Say in one message what went wrong and what to do; never shown with a traceback."""

    exit_code = 1


class UsageError(BakeoffError):
    """Refuse what a person typed or wrote in a file."""

    exit_code = 2


class Unavailable(BakeoffError):
    """Name the program, interpreter or device that is missing, and what would bring it."""


class RunError(BakeoffError):
    """Refuse a run directory: locked, damaged, changed or not comparable."""


class DamagedFile(RunError):
    """Name a file of a run that does not hold what it should."""


class FullDisk(RunError):
    """Say that a disk or a quota is used up, and what to do once there is space."""

    def __init__(self, what: str, then: str = "try again") -> None:
        self.what = what
        super().__init__(f"{what} Free some space, then {then}.")


@dataclass(frozen=True)
class Fault:
    """One thing wrong in a file: where it stands, what it is, what is allowed."""

    file: str
    line: int | None
    key: str
    message: str
    allowed: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        head = f"{where}: {self.key}: {self.message}" if self.key else f"{where}: {self.message}"
        if not self.allowed:
            return head
        return f"{head}\n    Known: {', '.join(self.allowed)}."


class FaultyFile(UsageError):
    """Report every fault of a file at once."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        count = len(self.faults)
        lines = [str(fault) for fault in self.faults]
        lines.append(f"{count} fault{'s' if count != 1 else ''}, nothing was run.")
        super().__init__("\n".join(lines))


_ELSEWHERE = {
    "cuda": "gpu",
    "float64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
}
"""What other programs call what is known here by another word."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest the known name closest to a misspelt one, as a sentence or nothing.

    Where none is close, the only one that begins with it is meant.
    """
    names = list(known)
    same = _ELSEWHERE.get(name.lower())
    close = [same] if same in names else difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if not close and len(longer := [one for one in names if name and one.startswith(name)]) == 1:
        close = longer
    return f" Did you mean '{close[0]}'?" if close else ""
