"""Lay a folder out over the servers of a Lustre file system, as a cell's factors say.

``lfs setstripe`` on a folder decides for every file that is made in it later; files that are there
keep theirs (Lustre operations manual, "Setting the File Layout/Striping Configuration").
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import commands
from harness.errors import BakeoffError, Unavailable

PROGRAM = "lfs"
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Stripes:
    """The number of servers that a file is spread over, and the size of each piece."""

    count: int | None
    size_mb: int | None

    @property
    def suffix(self) -> str:
        """Its part of a data set's name; empty where the file system decides."""
        count = "" if self.count is None else f"-c{self.count}"
        return count + ("" if self.size_mb is None else f"-S{self.size_mb}M")

    @property
    def options(self) -> list[str]:
        """Its options for ``bakeoff data create``."""
        count = [] if self.count is None else ["--stripe-count", str(self.count)]
        return count + ([] if self.size_mb is None else ["--stripe-mb", str(self.size_mb)])


def of(factors: Mapping[str, Any]) -> Stripes:
    """Give what a cell asks for."""
    return Stripes(factors.get("stripe_count"), factors.get("stripe_mb"))


def lay(folder: Path, stripes: Stripes) -> None:
    """Make a folder in which every file will lie as asked."""
    program = shutil.which(PROGRAM)
    is_striped = stripes != Stripes(None, None)
    if is_striped and program is None:
        raise Unavailable(f"{PROGRAM} is no program here: stripes are Lustre's.")
    folder.mkdir(parents=True, exist_ok=True)
    if not is_striped or program is None:
        return
    command = [program, "setstripe"]
    command += [] if stripes.count is None else ["-c", str(stripes.count)]
    command += [] if stripes.size_mb is None else ["-S", f"{stripes.size_mb}M"]
    done = commands.run([*command, str(folder)], timeout_s=_TIMEOUT_S)
    if done.code:
        complaint = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.code}"
        raise BakeoffError(f"{folder}: {PROGRAM} setstripe refused: {complaint}")
