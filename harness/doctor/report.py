"""Put the doctor's two reports together: the installation and the machine."""

from __future__ import annotations

from dataclasses import dataclass

from harness.doctor import installation, machine_checks
from harness.doctor.finding import DoctorFinding
from harness.machine.machine import read_machine


@dataclass(frozen=True)
class Report:
    """What the doctor found."""

    installation: tuple[DoctorFinding, ...]
    machine: tuple[DoctorFinding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing found stops Bakeoff from working."""
        return all(one.level != "fault" for one in (*self.installation, *self.machine))


def examine(platform: str) -> Report:
    """Look at this installation and this machine; frameworks where the platform has them."""
    return Report(tuple(installation.look(platform)), tuple(machine_checks.judge(read_machine())))
