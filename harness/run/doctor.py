"""This file puts the doctor's two reports together: the installation and the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.run import checks, installation
from harness.run.machine import read_machine


@dataclass(frozen=True)
class Report:
    """What the doctor found."""

    installation: tuple[Finding, ...]
    machine: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing found stops Bakeoff from working."""
        return all(one.level != "fault" for one in (*self.installation, *self.machine))


def examine() -> Report:
    """Look at this installation and this machine."""
    return Report(tuple(installation.look()), tuple(checks.judge(read_machine())))


Level = Literal["fine", "warning", "fault", "unknown"]


@dataclass(frozen=True)
class Finding:
    """A fault stops Bakeoff from working; a warning spoils numbers or narrows what can be run."""

    check: str
    level: Level
    seen: str
    remedy: str = ""
