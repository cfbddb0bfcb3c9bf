"""Say for which Python of which machine wheels are chosen, from what a person tells of it."""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.environments import pythons
from harness.environments.package_index.pip_for_nodes import Target
from harness.environments.pythons import Python
from harness.errors import UsageError

_PYTHON = re.compile(r"3\.(\d{1,2})(?:\.(\d{1,2}))?")
_GLIBC = re.compile(r"2\.\d{1,2}")


@dataclass(frozen=True)
class Machine:
    """The machine that an archive is for; by default one like this."""

    python: tuple[int, int, int]
    machine: str
    glibc: str

    @staticmethod
    def described(python: str | None, machine: str | None, glibc: str | None) -> Machine:
        """Read what was said of it, and take the rest from this machine."""
        number = _PYTHON.fullmatch(python or ".".join(map(str, sys.version_info[:3])))
        if number is None or int(number[1]) < 11:
            raise UsageError(f"--python {python}: Bakeoff needs 3.11 or later, written like 3.12.")
        kind, here = platform.libc_ver()
        glibc = glibc or (here if kind == "glibc" else "")
        if not _GLIBC.fullmatch(glibc):
            raise UsageError(
                f"--glibc {glibc or 'is needed'}: write the version there, like 2.28. There, "
                "`ldd --version` prints it."
            )
        minor, micro = int(number[1]), int(number[2] or 0)
        return Machine((3, minor, micro), machine or platform.machine(), glibc)

    @property
    def facts(self) -> dict[str, str]:
        """What an archive says of it."""
        python = ".".join(map(str, self.python[:2]))
        return {"python": python, "machine": self.machine, "libc": f"glibc {self.glibc}"}

    def target(self, specifier: str = "") -> Target:
        """Give the Python there that a specifier allows: Bakeoff's own, or else the newest."""
        version = self.python
        if not pythons.satisfies(version, specifier):
            version = (3, pythons.minors(specifier)[0], 0)
        python = Python(Path(sys.executable), version, "cpython", self.machine, "linux")
        full = ".".join(map(str, version))
        markers = {
            "os_name": "posix",
            "sys_platform": "linux",
            "platform_machine": self.machine,
            "platform_system": "Linux",
            "platform_release": "",
            "platform_version": "",
            "platform_python_implementation": "CPython",
            "implementation_name": "cpython",
            "implementation_version": full,
            "python_full_version": full,
            "python_version": ".".join(map(str, version[:2])),
        }
        return Target(python, ("glibc", self.glibc), markers)
