"""One line of the doctor's report: what was looked at, what was seen, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["fine", "warning", "fault", "unknown"]


@dataclass(frozen=True)
class DoctorFinding:
    """A fault stops Bakeoff from working; a warning spoils numbers or narrows what can be run."""

    check: str
    level: Level
    seen: str
    remedy: str = ""
