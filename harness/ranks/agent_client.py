"""The host's end of an agent: start it, send it trials, receive how they ended."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from harness.agent import processes
from harness.agent.protocol import BEAT_S, Lines, TrialCommand, TrialEnd, line, read_end, trial_line
from harness.ranks.agent_clock import ClockComparison
from harness.ranks.agent_errors import ErrorLog
from harness.ranks.interrupts import Interrupts
from harness.store.contained import Contained

TICK_S = 1.0
_CLOCK_PATIENCE_S = 2.0
_LONGEST_COMPLAINT = 1 << 14
_SILENCE_S = 12 * BEAT_S


class AgentProcess:
    """The agent of this machine, started with the first trial and kept for all.

    ``through`` is what starts it elsewhere: a command that takes another one as its arguments.
    """

    def __init__(self, errors: Path, *, through: Sequence[str] = ()) -> None:
        self._errors = errors
        self._files = Contained(errors.parent)
        self._through = through
        self._process: subprocess.Popen[bytes] | None = None
        self._log: ErrorLog | None = None
        self._lines = Lines()
        self._heard = deque[dict[str, Any]]()
        """What it said that nobody has waited for yet."""
        self._command: TrialCommand | None = None
        self._said_before = 0
        self._obeyed = 0
        self.host = ""
        self.complaint = ""
        """What it said last of the trial that it was lost in, and where the rest stands."""
        self.clock: ClockComparison | None = None

    def run(
        self,
        command: TrialCommand,
        *,
        core: int | None,
        interrupts: Interrupts,
        on_tick: Callable[[], None],
    ) -> TrialEnd | None:
        """Run one trial to its end; None means that the agent itself was lost."""
        self.begin(command, core=core, interrupts=interrupts)
        message = self.hear("ended", interrupts=interrupts, on_tick=on_tick)
        return None if message is None else read_end(message)

    def begin(self, command: TrialCommand, *, core: int | None, interrupts: Interrupts) -> None:
        """Begin one trial; start the agent if it does not run."""
        if self._process is None:
            self._start(core)
        self._command = command
        if self._log is not None:
            self._log.know([rank.env for rank in command.ranks])
        self._heard.clear()
        self._said_before = self._files.size(self._errors)
        self._obeyed = 0  # an interrupt just before this trial began is meant for it too
        self._compare_clocks(interrupts)
        self._send(trial_line(command))

    def hear(
        self, *words: str, interrupts: Interrupts, on_tick: Callable[[], None]
    ) -> Mapping[str, Any] | None:
        """Wait until the agent says one of some words; None means that it was lost.

        The end of the trial ends every wait.
        """
        assert self._command is not None
        silent_s = 0.0  # only while this host listened: it may have been stopped itself
        while True:
            while self._heard:
                message = self._heard.popleft()
                if message["say"] == "ended":
                    self._compare_clocks(interrupts)
                    return message
                if message["say"] in words:
                    return message
            self.obey(interrupts)
            self._heard.extend(self._receive(interrupts, TICK_S))
            silent_s = 0.0 if self._heard else silent_s + TICK_S
            if self._heard:
                continue
            if self._process is None or silent_s > _SILENCE_S:
                self._lost(self._command.token)
                self._complain(self._said_before)
                return None
            if self.clock is not None and not self.clock.is_own:
                self._send(self.clock.begin_if_due())
            on_tick()

    def obey(self, interrupts: Interrupts) -> None:
        """Pass a request to stop on to the trial that runs."""
        assert self._command is not None
        if interrupts.count > self._obeyed:
            self._obeyed = interrupts.count
            grace_s = self._command.grace_s if self._obeyed == 1 else 0.0
            self._send(line("cancel", grace_s=grace_s))

    def give(self, word: str, **fields: Any) -> None:
        """Give a trial that takes turns the word."""
        self._send(line(word, **fields))

    @property
    def pid(self) -> int | None:
        """The process that was started here; None: none runs."""
        return None if self._process is None else self._process.pid

    def _compare_clocks(self, interrupts: Interrupts) -> None:
        """Ask the agent's clock a burst of questions while no trial runs."""
        clock = self.clock
        if clock is None or clock.is_own:
            return
        self._send(clock.begin())
        end = time.monotonic() + _CLOCK_PATIENCE_S
        while clock.is_asking and self._process is not None:
            if (left_s := end - time.monotonic()) <= 0:
                clock.give_up()
                return
            self._receive(interrupts, left_s)

    def _start(self, core: int | None) -> None:
        argv = [*self._through, sys.executable, "-P", "-m", "harness.agent"]
        with ExitStack() as unstarted:
            errors = unstarted.enter_context(self._files.writing(self._errors))
            # A session of its own: the terminal's Ctrl-C is for the host, which knows what to do.
            self._process = subprocess.Popen(
                argv if core is None else [*argv, str(core)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            unstarted.pop_all()
        self._lines = Lines()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._log = ErrorLog(self._process.stderr, errors)
        for text in self._process.stdout:  # a login script may greet first
            for message in self._lines.feed(text):
                self.host = message["host"]
                self.clock = ClockComparison(message["clock"])
                return

    def _send(self, message: bytes) -> None:
        if self._process is None:
            return
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # noticed where its answers are awaited
            self._process.stdin.write(message)
            self._process.stdin.flush()

    def _receive(self, interrupts: Interrupts, patience_s: float) -> list[dict[str, Any]]:
        if self._process is None:
            return []
        assert self._process.stdout is not None
        reports = self._process.stdout.fileno()
        ready, _, _ = select.select([reports, interrupts.fileno()], [], [], patience_s)
        if interrupts.fileno() in ready:
            interrupts.drain()
        if reports not in ready:
            return []
        data = os.read(reports, 1 << 16)
        read_ns = time.monotonic_ns()
        if not data:
            self._forget()
        messages = self._lines.feed(data)
        for message in messages:
            if message["say"] == "clock" and self.clock is not None:
                self._send(self.clock.take_answer(message, read_ns))
        return messages

    def _lost(self, token: str) -> None:
        """Kill an agent that died or fell silent, and every process of its trial."""
        if self._process is not None:
            self._process.kill()
            self._forget()
        processes.sweep_marked(processes.mark(token))

    def _complain(self, said_before: int) -> None:
        """Quote the last line that the agent wrote while it was lost."""
        self.complaint = ""
        new = self._files.size(self._errors) - said_before
        if new > 0:
            text = self._files.read_end(self._errors, min(new, _LONGEST_COMPLAINT))
            lines = text.decode(errors="replace").split("\n")
            last = next((line.strip() for line in reversed(lines) if line.strip()), "")
            self.complaint = f"It said last: {last} Log: {self._errors}"

    def _forget(self) -> None:
        assert self._process is not None
        process, self._process = self._process, None
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # what was not sent is of no interest any more
                pipe.close()
        process.wait()
        if self._log is not None:
            self._log.finish()

    def close(self) -> None:
        """Close the pipe and wait until the agent has cleaned up and gone."""
        if self._process is not None:
            self._forget()
        if self._files.exists(self._errors) and self._files.size(self._errors) == 0:
            self._files.remove(self._errors)
