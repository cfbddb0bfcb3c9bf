"""Limit a trial's memory: by a control group where one can be made, else by RLIMIT_DATA.

A limit is entered by each rank's process between its fork and its program, so that not a page of
the program escapes, and the agent, which must survive to report, is never under the limit itself.
Sources: cgroup-v1/memory.rst, cgroup-v2.rst.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Protocol

from harness.machine.cgroup import memberships
from harness.store.outcome import MemoryEvidence

_OOM_KILL = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class Limit(Protocol):
    """A limit that ranks are started under."""

    def enter_function(self) -> Callable[[], None] | None:
        """Give the function that a forked process calls to enter the limit; None: no need."""

    def evidence(self) -> MemoryEvidence:
        """Give what the kernel counted."""

    def close(self) -> None:
        """Remove the limit when its processes are gone."""


def limit(memory_bytes: int | None, token: str) -> Limit:
    """Choose the best limit that this machine allows."""
    group = own_group()
    if memory_bytes is None:
        return Unlimited(group)
    if group is not None:
        # With this process in its name, a group that a killed agent left is in no other's way.
        name = f"bakeoff-{os.getpid()}-" + re.sub(r"[^A-Za-z0-9.-]", "-", token)
        with suppress(OSError):  # no right to make one: the next best follows
            return TrialGroup(group, name, memory_bytes)
    return DataLimit(memory_bytes, group)


class OwnGroup:
    """The control group that this process lives in."""

    def __init__(self, path: Path, version: int, *, is_root: bool) -> None:
        self.path = path
        self.version = version
        self.is_root = is_root

    def oom_kills(self) -> int | None:
        """Count the processes of this group that the kernel killed for memory."""
        return _oom_kills(self.path, self.version)


@cache
def own_group() -> OwnGroup | None:
    """Find this process's memory control group through its mounts; None where there is none."""
    for one in memberships():
        own = one.folders[0]
        controllers = one.controllers or _text(own / "cgroup.controllers").split()
        if "memory" in controllers:
            return OwnGroup(own, one.version, is_root=one.is_root)
    return None


def _text(path: Path) -> str:
    with suppress(OSError), open(path, "rb", buffering=0) as file:  # noqa: PTH123  each trial, twice
        return file.read().decode()
    return ""  # the file's absence is the answer


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _oom_kills(path: Path, version: int) -> int | None:
    match = _OOM_KILL.search(
        _text(path / ("memory.events" if version == 2 else "memory.oom_control"))
    )
    return int(match[1]) if match else None


class Unlimited:
    """No limit set by Bakeoff; kills by the kernel's out-of-memory killer are still counted."""

    def __init__(self, group: OwnGroup | None) -> None:
        self._group = group
        self._before = group.oom_kills() if group else None

    def enter_function(self) -> Callable[[], None] | None:
        """Give None: ranks enter no group."""
        return None

    def evidence(self) -> MemoryEvidence:
        """Count the processes that the kernel killed for memory since the start."""
        return MemoryEvidence("none", None, None, self._killed())

    def _killed(self) -> int | None:
        now = self._group.oom_kills() if self._group else None
        return None if now is None or self._before is None else now - self._before

    def close(self) -> None:
        """Remove nothing: no group was made."""


class DataLimit(Unlimited):
    """RLIMIT_DATA of each process: the framework sees a failed allocation."""

    def __init__(self, memory_bytes: int, group: OwnGroup | None) -> None:
        super().__init__(group)
        self._bytes = memory_bytes

    def enter_function(self) -> Callable[[], None] | None:
        """Lower the process's soft limit, which its program inherits."""
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        soft = self._bytes if hard == resource.RLIM_INFINITY else min(self._bytes, hard)
        return lambda: resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))

    def evidence(self) -> MemoryEvidence:
        """Name the limit; the kernel keeps no count of refused allocations."""
        return MemoryEvidence("RLIMIT_DATA", self._bytes, None, self._killed())


class TrialGroup:
    """A control group made for one trial."""

    def __init__(self, own: OwnGroup, name: str, memory_bytes: int) -> None:
        self._version = own.version
        self._bytes = memory_bytes
        self._home = own.path
        # Version 2 forbids processes beside a group's children: the trial's is our sibling there.
        beside = own.version == 2 and not own.is_root
        self._path = (own.path.parent if beside else own.path) / name
        self._path.mkdir()
        try:
            # Making a group does not imply the right to move into it; no limit, no process killed.
            self._write("cgroup.procs", 0)
            (self._home / "cgroup.procs").write_text("0", encoding="utf-8")
            self._write("memory.max" if own.version == 2 else "memory.limit_in_bytes", memory_bytes)
        except OSError:
            self._path.rmdir()
            raise
        for file, value in (
            ("memory.memsw.limit_in_bytes", memory_bytes),
            ("memory.swap.max", 0),
            ("memory.oom.group", 1),
        ):
            with suppress(OSError):  # absent in the other version, or without swap accounting
                self._write(file, value)

    def _write(self, file: str, value: int) -> None:
        # Opened without O_CREAT: a control file that is absent must stay so.
        with open(self._path / file, "r+", encoding="utf-8") as control:  # noqa: PTH123
            control.write(str(value))

    def enter_function(self) -> Callable[[], None] | None:
        """Move the process into the trial's group."""
        return lambda: self._write("cgroup.procs", 0)

    def evidence(self) -> MemoryEvidence:
        """Read the group's own counters."""
        peak = "memory.peak" if self._version == 2 else "memory.max_usage_in_bytes"
        return MemoryEvidence(
            f"cgroup v{self._version}",
            self._bytes,
            _number(self._path / peak),
            _oom_kills(self._path, self._version),
        )

    def close(self) -> None:
        """Remove the group; one that a survivor still holds stays, and is reported as survivor."""
        with suppress(OSError):
            self._path.rmdir()
