"""The agent's event loop: commands in, reports out, ranks and watchers between."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.agent import clock, processes
from harness.agent.heartbeat import Heartbeat, Watchers
from harness.agent.protocol import Lines, TrialCommand, end_line, line, read_trial
from harness.agent.trial import RunningTrial
from harness.collect.collector import Collector
from harness.collect.sampler import Observed
from harness.errors import RunError
from harness.store.layout import TrialPaths


class Agent:
    """Serves one trial after another until its launcher's pipe closes or it is told to end."""

    def __init__(self, commands: int, reports: int) -> None:
        self._commands = commands
        self._reports = reports
        self._lines = Lines()
        self._selector = selectors.DefaultSelector()
        self._selector.register(commands, selectors.EVENT_READ, self._read)
        self._trial: RunningTrial | None = None
        self._is_watched = False
        self._watch = Watchers((Heartbeat(self._report),))
        self._collector = Collector()
        self._folder: int | None = None
        """The trial's, held open."""
        self._closing = False

    def serve(self) -> None:
        """Serve until the pipe closes; end every process that is left."""
        self._end_on_signals()
        host = socket.gethostname()
        self._report(line("ready", pid=os.getpid(), host=host, clock=clock.identity()))
        with suppress(RuntimeError):  # no more threads: the first trial that is observed says so
            threading.Thread(target=self._collector.prepare, daemon=True).start()
        while not self._closing:
            for key, _ in self._selector.select(self._patience_s()):
                self._act(key)
            self._look_at_clock()
        if self._trial is not None:
            self._trial.stop("closed", grace_s=0.0)
            while not self._trial.is_over:
                for key, _ in self._selector.select():
                    if key.fd != self._commands:
                        self._act(key)
            self._finish(self._trial)

    def _act(self, key: selectors.SelectorKey) -> None:
        """Call a ready descriptor's action, unless an earlier action of this turn closed it."""
        if self._selector.get_map().get(key.fileobj) is key:
            key.data()

    def _end_on_signals(self) -> None:
        """Treat SIGTERM and SIGHUP like a closed pipe; ignore Ctrl-C, which the host handles.

        A hang-up that the host ignores is ignored here too: it was started with nohup.
        """
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        signal.set_wakeup_fd(writer.fileno())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: None)
        self._wakeup = (reader, writer)
        self._selector.register(reader, selectors.EVENT_READ, self._signalled)

    def _signalled(self) -> None:
        if signal.SIGTERM in (numbers := self._wakeup[0].recv(64)) or signal.SIGHUP in numbers:
            self._closing = True

    def _report(self, message: bytes) -> None:
        try:
            while message:
                message = message[os.write(self._reports, message) :]
        except BrokenPipeError:
            self._closing = True

    def _read(self) -> None:
        data = os.read(self._commands, 1 << 16)
        received_ns = time.monotonic_ns()
        if not data:
            self._selector.unregister(self._commands)
            self._closing = True
            return
        for message in self._lines.feed(data):
            self._obey(message, received_ns)

    def _obey(self, message: Mapping[str, Any], received_ns: int) -> None:
        if message["say"] == "clock":
            self._report(clock.answer(message, received_ns))
        elif message["say"] == "trial":
            if self._trial is not None:
                raise RuntimeError("a trial is still running on this agent")
            command, problem = self._in_its_folder(read_trial(message))
            self._trial = RunningTrial(
                command, self._selector, self._report, observer=self._collector, problem=problem
            )
            self._is_watched = False
            self._watch_if_begun(self._trial)
        elif message["say"] == "cancel" and self._trial is not None:
            self._trial.stop("cancel", message["grace_s"])
        elif message["say"] in ("turn", "finish") and self._trial is not None:
            self._trial.give(message)

    def _in_its_folder(self, command: TrialCommand) -> tuple[TrialCommand, str | None]:
        """Hold a trial's folder open, and name it by that: its path may become another's.

        Ranks stand in it, and what they print and what is read of the node is written to it,
        wherever it is moved. Give why not, if another one lies at the path already.
        """
        with suppress(OSError):  # whoever needs it will say so
            folder = os.open(command.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if not _is_own(folder, command):
                os.close(folder)
                return command, f"{command.directory}: another directory is here now"
            self._folder, path = folder, command.directory
            here = f"/proc/self/fd/{folder}"
            ranks = [replace(one, cwd=here) if one.cwd == path else one for one in command.ranks]
            starter = command.starter
            if starter is not None and starter.cwd == path:
                starter = replace(starter, cwd=here)
            return replace(command, directory=here, ranks=tuple(ranks), starter=starter), None
        return command, None

    def _watch_if_begun(self, trial: RunningTrial) -> None:
        """Start observing once every rank has started."""
        if not self._is_watched and trial.has_begun:
            self._is_watched = True
            pids = trial.pids
            self._watch.start(trial.command, pids, time.monotonic_ns())
            self._observe(trial.command, pids)
            self._report(line("started", pids=pids))

    def _observe(self, command: TrialCommand, pids: Mapping[int, int]) -> None:
        """Record the hardware in threads of the collector's own; ranks are reaped in this one."""
        if command.observe is None:
            return
        devices = {
            one.rank: one.env.get("BAKEOFF_DEVICES", one.env.get("CUDA_VISIBLE_DEVICES"))
            for one in command.ranks
        }
        cpus = {one.rank: one.cpus for one in command.ranks}
        directory = Path(command.directory)
        self._collector.begin(
            TrialPaths(directory).samples(socket.gethostname()),
            Observed(ranks=pids, cpus=cpus, devices=devices, directory=directory),
            command.observe,
        )

    def _patience_s(self) -> float | None:
        """Give the seconds until the next deadline or tick."""
        moments = []
        if self._trial is not None:
            if self._trial.is_over:
                return 0.0
            if self._trial.deadline_s is not None:
                moments.append(self._trial.deadline_s)
            if (tick_ns := self._watch.next_ns()) is not None:
                moments.append(tick_ns / 1e9)
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _look_at_clock(self) -> None:
        trial = self._trial
        if trial is None:
            return
        if trial.is_over:
            self._finish(trial)
            return
        self._watch_if_begun(trial)
        self._watch.run(time.monotonic_ns())
        if trial.deadline_s is not None and trial.deadline_s <= time.monotonic():
            trial.deadline_passed()

    def _finish(self, trial: RunningTrial) -> None:
        self._trial = None
        self._watch.stop()
        seen = self._collector.end()
        if self._folder is not None:
            here = trial.command.directory  # names nothing to anybody else
            told = seen.problem and seen.problem.replace(here, os.readlink(here))  # noqa: PTH115
            seen = replace(seen, problem=told)
            os.close(self._folder)
            self._folder = None
        end = replace(trial.close(), unobserved=seen.problem, stand_ins=seen.stand_ins)
        self._report(end_line(end))


def _is_own(folder: int, command: TrialCommand) -> bool:
    """Tell whether a folder is that of a trial that begins now: its job, and no outcome yet."""
    if command.inode not in (None, os.fstat(folder).st_ino):
        return False
    if command.job is None:
        return True
    trial = TrialPaths(Path(f"/proc/self/fd/{folder}"))
    try:
        job = trial.files.read_bytes(trial.job)
        return sha256(job).hexdigest() == command.job and not trial.files.exists(trial.outcome)
    except (FileNotFoundError, RunError):
        return False


def main(core: int | None) -> None:
    """Serve on standard input and output, on a core of its own if there is one."""
    if core is not None:
        with suppress(OSError):  # the core went away since the host looked: any other will do
            os.sched_setaffinity(0, {core})
    processes.adopt_orphans()
    # What a library prints must not garble the reports.
    reports = os.dup(1)
    os.dup2(2, 1)
    Agent(0, reports).serve()
