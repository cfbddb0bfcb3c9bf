"""Run the command line in a process of its own, forked from one that has imported it already.

That saves half a second of imports each time. A fresh interpreter is started where start-up
itself is what is tested.
"""

from __future__ import annotations

import atexit
import importlib
import os
import pkgutil
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.agent import processes
from harness.ranks import payload

MARK = "BAKEOFF_GAUNTLET_LANE"
"""Carried by all that a lane starts, so that what is left over is found."""
_RUNS = "in _run\n"
"""A line of each stack of a command that has begun."""
TRACEBACK = "Traceback (most recent call last)"
_IMPORTED = (
    *("duckdb", "rich.live", "scipy.stats", "reports.page.files", "reports.text.terminal"),
    *("harness.cli.main", "harness.cli.session_progress", "harness.gate.gate", "jinja2"),
    *("harness.launch.launchers.local", "harness.run.session", "workloads.tinycnn"),
)
_WHOLE = ("harness.cli.verbs", "harness.sections")
"""What sessions, pages and the other verbs need, besides what these import."""
_POLITE = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)
_MEANT_FOR_COMMANDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    """As ``subprocess`` gives it: below zero for a signal."""
    seconds: float
    memory_bytes: int
    output: str
    errors: str

    @property
    def has_traceback(self) -> bool:
        """Whether it showed a stack trace; Ctrl-C before its first line is Python's to answer."""
        is_python_s = self.errors.endswith("KeyboardInterrupt\n") and _RUNS not in self.errors
        return (TRACEBACK in self.errors or TRACEBACK in self.output) and not is_python_s

    @property
    def last_words(self) -> str:
        """The end of what it complained of."""
        return self.errors[-1500:]


class Command:
    """A command that runs; its output goes to two files."""

    def __init__(self, pid: int, told: Path) -> None:
        self.pid = pid
        self._told = told
        self._began = time.monotonic()
        self._descriptor = os.pidfd_open(pid)

    def has_ended(self, within_s: float = 0.0) -> bool:
        """Wait so long for its end, and tell whether it came."""
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLIN)
        return bool(waiting.poll(within_s * 1000))

    def wait(self, patience_s: float) -> Ended | None:
        """Give how it ended; kill it and give None if it takes longer than that."""
        is_over = self.has_ended(patience_s)
        if not is_over:
            os.kill(self.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.pid, 0)
        os.close(self._descriptor)
        if not is_over:
            return None
        return Ended(
            os.waitstatus_to_exitcode(status),
            time.monotonic() - self._began,
            usage.ru_maxrss * 1024,
            self._told.with_suffix(".out").read_text(errors="replace"),
            self._told.with_suffix(".err").read_text(errors="replace"),
        )


def prepare(lane: str) -> None:
    """Mark this process and its children, adopt their orphans, and read what commands need."""
    os.environ[MARK] = lane
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a fork must not meet threads
    state = tempfile.mkdtemp(prefix="bakeoff-gauntlet-state-")
    os.environ["XDG_STATE_HOME"] = state  # what is known of thousands of runs is not the user's
    remove_at_exit(state)
    processes.adopt_orphans()
    for module in _IMPORTED:
        importlib.import_module(module)
    for package in map(importlib.import_module, _WHOLE):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)
    payload.Closures(payload.gather()).digest("workloads.tinycnn", "harness.worker.adapters.null")


def remove_at_exit(folder: str) -> None:
    """Remove a folder when this process ends, and not when one that is forked from it does."""
    atexit.register(_remove, folder, os.getpid())


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def start(
    *arguments: str,
    cwd: Path,
    told: Path,
    is_fresh: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Command:
    """Start a command as the leader of a process group; it prints to ``told``.out and .err."""
    # A signal that comes before the child is the command would have it go on as the lane.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _MEANT_FOR_COMMANDS)
    for kind in (".out", ".err"):  # one that is killed before it opens them has said nothing
        told.with_suffix(kind).write_bytes(b"")
    pid = os.fork()
    if pid == 0:
        try:
            _be(arguments, cwd, told, is_fresh=is_fresh, environment=environment or {})
        finally:
            os._exit(1)  # whatever happens
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return Command(pid, told)


def _be(
    arguments: Sequence[str],
    cwd: Path,
    told: Path,
    *,
    is_fresh: bool,
    environment: Mapping[str, str],
) -> None:
    """Become the command; this never returns. Signals wait until it is."""
    code = 1
    try:
        os.setsid()
        os.chdir(cwd)
        for number in _POLITE:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python starts
        _redirect(told)
        os.environ.update(environment)
        if is_fresh:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _MEANT_FOR_COMMANDS)
            os.execv(sys.executable, [sys.executable, "-m", "harness.cli", *arguments])
        from harness.cli import entry_point

        sys.argv = ["bakeoff", *arguments]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _MEANT_FOR_COMMANDS)
        entry_point.main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:  # noqa: BLE001  told as the interpreter would
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _redirect(told: Path) -> None:
    """Read nothing, and print to two files."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for descriptor, suffix in ((1, ".out"), (2, ".err")):
        file = os.open(told.with_suffix(suffix), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, descriptor)


def run(*arguments: str, cwd: Path, told: Path, patience_s: float = 60.0) -> Ended | None:
    """Run a command to its end."""
    return start(*arguments, cwd=cwd, told=told).wait(patience_s)


def descendants(pid: int) -> dict[int, str]:
    """Give all processes below one, with their command lines."""
    found = dict[int, str]()
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found[int(child)] = command_line(int(child))
            found |= descendants(int(child))
    return found


def command_line(pid: int) -> str:
    """Give a process's arguments; nothing of one that has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def left_over(lane: str, within_s: float) -> list[str]:
    """Give the command lines of what this lane started and what is still there after a while."""
    end = time.monotonic() + within_s
    while True:
        processes.reap()
        pids = processes.carriers(f"{MARK}={lane}".encode() + b"\0")
        if not pids or time.monotonic() > end:
            break
        time.sleep(0.02)
    told = []
    for pid in pids:
        told.append(command_line(pid))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    processes.reap()
    return told
