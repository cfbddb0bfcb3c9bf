"""Let one modifying call below the run directory fail, each in turn; a resume completes the run.

A library preloaded into the session, its agent and its ranks counts the calls that open for
writing, write, flush, rename, make or remove, and lets the n-th fail: ``fault_injector.c``.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.gauntlet import small_run
from tests.gauntlet.command import MARK, Ended, left_over, run
from tests.gauntlet.part import Part, Stage

SOURCE = Path(__file__).with_name("fault_injector.c")
CONTROL = "FAULT_CONTROL"
BLOCKS = 2
PATIENCE_S = 60.0
_LAYOUT = struct.Struct("=qqqqq1024s64s1024s")
_OTHERS = (errno.EIO, errno.EDQUOT, errno.EINTR)
_EVERY = 5
"""Of so many calls one also fails with another error, and one with all that follow it."""
_HARMLESS = ("unlink", "unlinkat", "rmdir")
"""What could not be removed need not end anything."""


@dataclass(frozen=True)
class Fault:
    """Which call fails, and how."""

    at: int
    error: int = errno.ENOSPC
    stays: bool = False
    """Whether every later call fails as well, as on a disk that stays full."""

    def __str__(self) -> str:
        name = errno.errorcode[self.error]
        return f"{name} at call {self.at}{' and after it' if self.stays else ''}"


@dataclass(frozen=True)
class Hit:
    """What the injector counted, and the call that failed first."""

    calls: int
    failed: int
    call: str
    path: str


class Injector:
    """The injector's control file, which every preloaded process maps."""

    def __init__(self) -> None:
        file = os.open(os.environ[CONTROL], os.O_RDWR)
        self._memory = mmap.mmap(file, _LAYOUT.size)
        os.close(file)

    def arm(self, folder: Path, fault: Fault | None) -> None:
        """Count from 0 below a folder, and let a fault happen there."""
        at = 0 if fault is None else -fault.at if fault.stays else fault.at
        error = 0 if fault is None else fault.error
        self._write(at, error, str(folder))

    def disarm(self) -> Hit:
        """Stop; give what happened."""
        _, _, calls, failed, _, _, call, path = _LAYOUT.unpack(self._memory[: _LAYOUT.size])
        self._write(0, 0, "")
        return Hit(calls, failed, _text(call), _text(path))

    def _write(self, at: int, error: int, below: str) -> None:
        traced = int("FAULT_TRACE" in os.environ)
        self._memory[: _LAYOUT.size] = _LAYOUT.pack(
            at, error, 0, 0, traced, below.encode(), b"", b""
        )


def _text(field: bytes) -> str:
    return field.split(b"\0")[0].decode(errors="replace")


def preload() -> None:
    """Compile the injector and begin this program again with it preloaded, unless it is."""
    if CONTROL in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix="gauntlet-injector-"))
    library = folder / "injector.so"
    flags = ("-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror")
    subprocess.run(["cc", *flags, "-o", str(library), str(SOURCE), "-ldl"], check=True)
    control = folder / "control"
    control.write_bytes(bytes(_LAYOUT.size))
    os.environ |= {CONTROL: str(control), "LD_PRELOAD": str(library)}
    os.execv(sys.executable, sys.orig_argv)


@cache
def calls_of_a_run() -> int:
    """Count the modifying calls of a run without faults."""
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-gauntlet-"))
    injector = Injector()
    small_run.write(folder, cells=1, blocks=BLOCKS)
    injector.arm(folder / "runs", None)
    run(*small_run.RUN, cwd=folder, told=folder / "told")
    calls = injector.disarm().calls
    shutil.rmtree(folder)
    return calls


def faults_of(number: int) -> list[Fault]:
    """Give the faults of one part: a full disk at this call, at some also something else."""
    at = number + 1
    faults = [Fault(at)]
    if number % _EVERY == 0:
        faults.append(Fault(at, _OTHERS[number // _EVERY % len(_OTHERS)]))
    if number % _EVERY == 2:
        faults.append(Fault(at, stays=True))
    return faults


def make(seed: int, number: int, folder: Path) -> Part:
    """Let one call fail in each of this part's ways."""
    del seed  # every call is tried
    part = Part()
    for index, fault in enumerate(faults_of(number)):
        here = folder / str(index)
        _suffer(part, fault, here)
        shutil.rmtree(here, ignore_errors=True)
    return part


def _suffer(part: Part, fault: Fault, here: Path) -> None:
    """Run with a fault, look at what was said, and go on without it."""
    place = small_run.write(here, cells=1, blocks=BLOCKS)
    told, injector = here / "told", Injector()
    injector.arm(place.parent, fault)
    ended = run(*small_run.RUN, cwd=here, told=told, patience_s=PATIENCE_S)
    hit = injector.disarm()
    if not hit.failed:
        part.counts["runs that made fewer calls"] += 1
        return
    part.counts["faults"] += 1
    part.counts[f"of {hit.call}"] += 1
    where = {"fault": str(fault), "call": f"{hit.call} {_pattern(hit.path)}"}
    _judge(part, ended, where)
    before = small_run.finished(place)
    if (place / "plan.json").is_file():
        again = run(*small_run.RESUME, cwd=here, told=told, patience_s=PATIENCE_S)
    else:
        shutil.rmtree(place, ignore_errors=True)
        again = run(*small_run.RUN, cwd=here, told=told, patience_s=PATIENCE_S)
    if again is not None and again.code == 1 and "--retry-failed" in again.errors:
        part.counts["trials tried again"] += 1
        retry = (*small_run.RESUME, "--retry-failed")
        again = run(*retry, cwd=here, told=told, patience_s=PATIENCE_S)
    if again is None:
        part.found("hang of the resume", **where)
        return
    if again.code != 0 or again.has_traceback:
        part.found("resume failed", code=again.code, said=again.last_words[-600:], **where)
    small_run.compare(part, before, small_run.finished(place), **where)
    small_run.check_whole(part, place, trials=BLOCKS, **where)
    if left := left_over(os.environ[MARK], 10.0):
        part.found("processes left", lines=left, **where)


def _judge(part: Part, ended: Ended | None, where: dict[str, str]) -> None:
    """Record what a person would complain of: a stack trace, silence, or the same thing twice."""
    if ended is None:
        part.found("hang", **where)
        return
    part.saw("seconds of a run", ended.seconds)
    said = [line for line in ended.errors.splitlines() if line.strip()]
    if ended.has_traceback:
        part.found("traceback", said=ended.last_words, **where)
    if ended.code < 0 or ended.code not in (0, 1, 2):
        part.found("exit code", code=ended.code, said=ended.last_words[-300:], **where)
    if ended.code != 0 and not said:
        part.found("silent failure", **where)
    part.counts["said and ended with 1" if ended.code else "did no harm"] += 1


def _pattern(path: str) -> str:
    """Shorten a path to what it is of."""
    pieces = path.strip("/").split("/")
    return "/".join("KEY" if len(one) == 16 and one.isalnum() else one for one in pieces)


STAGE = Stage("faults", "input and output that fails", calls_of_a_run, make, "faults")
