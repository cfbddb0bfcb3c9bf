"""Kill sessions in nineteen ways at random moments; what was finished stays as it was, once."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.gauntlet import small_run
from tests.gauntlet.command import Command, Ended, descendants, left_over, start
from tests.gauntlet.part import Part, Stage

KILLS_OF_A_PART = 19
PATIENCE_S = 60.0
"""More than ending a trial gently takes, on a machine in use."""
_FRESH_SHARE = 0.1
_MOST_OF_A_RUN = 8


@dataclass(frozen=True)
class Kind:
    """One way to kill: whom, by what, and when."""

    name: str
    target: str
    signals: tuple[signal.Signals, ...]
    moment: str = "any"

    @property
    def costs_a_trial(self) -> bool:
        """Whether the trial ends as failed, which is its result."""
        return self.target == "rank"


_STOPPED = (signal.SIGSTOP, signal.SIGKILL)
KINDS = (
    Kind("host SIGKILL", "host", (signal.SIGKILL,)),
    Kind("host SIGTERM", "host", (signal.SIGTERM,)),
    Kind("host SIGINT", "host", (signal.SIGINT,)),
    Kind("host SIGHUP", "host", (signal.SIGHUP,)),
    Kind("host SIGQUIT", "host", (signal.SIGQUIT,)),
    Kind("host stopped, then SIGKILL", "host", _STOPPED),
    Kind("host SIGINT twice", "host", (signal.SIGINT, signal.SIGINT)),
    Kind("agent SIGKILL", "agent", (signal.SIGKILL,), "trials"),
    Kind("agent SIGTERM", "agent", (signal.SIGTERM,), "trials"),
    Kind("agent stopped, then SIGKILL", "agent", _STOPPED, "trials"),
    Kind("rank SIGKILL", "rank", (signal.SIGKILL,), "trials"),
    Kind("rank SIGTERM", "rank", (signal.SIGTERM,), "trials"),
    Kind("rank stopped, then SIGKILL", "rank", _STOPPED, "trials"),
    Kind("group SIGINT", "group", (signal.SIGINT,)),
    Kind("group SIGKILL", "group", (signal.SIGKILL,)),
    Kind("tree SIGKILL", "tree", (signal.SIGKILL,)),
    Kind("host SIGKILL while the run is laid out", "host", (signal.SIGKILL,), "layout"),
    Kind("host SIGKILL as it resumes", "host", (signal.SIGKILL,), "resume"),
    Kind("host SIGKILL while it reports", "host", (signal.SIGKILL,), "report"),
)
_PROGRAMS = {"agent": "harness.agent", "rank": "harness.worker"}


class Lane:
    """Runs one after another, each killed some times and then gone on with to its end."""

    def __init__(self, part: Part, folder: Path, chance: random.Random, lane: str) -> None:
        self._part = part
        self._folder = folder
        self._chance = chance
        self._lane = lane
        self._number = 0
        self._here = folder
        self._begin_run()

    def _begin_run(self) -> None:
        self._number += 1
        shutil.rmtree(self._here, ignore_errors=True)
        self._here = self._folder / f"{self._number}"
        self._run = small_run.write(self._here, turns=self._number % 2 == 0)
        self._kinds: list[str] = []
        self._known: dict[str, str] = {}

    def kill_by(self, kind: Kind) -> None:
        """Kill a session so; try again where it had ended before."""
        for _ in range(20):
            if len(self._kinds) >= _MOST_OF_A_RUN or (kind.moment == "layout" and self._kinds):
                self._go_on_to_the_end()
            if kind.moment == "resume" and not (self._run / "plan.json").is_file():
                self._session(None)
            if self._session(kind):
                self._part.counts["kills"] += 1
                self._part.counts[kind.name] += 1
                return
            if self._is_complete():
                self._go_on_to_the_end()
        self._part.found("never hit", kind=kind.name)

    def _is_complete(self) -> bool:
        return len({trial.partition(".")[0] for trial in self._known}) == 2 * small_run.BLOCKS

    def _session(self, kind: Kind | None) -> bool:
        """Start a session or go on with one; tell whether it was killed before its end."""
        if kind is not None and kind.moment == "report":
            self._session(None)
            arguments = small_run.REPORT
        elif (self._run / "plan.json").is_file():
            arguments = small_run.RESUME
        else:
            self._leave_half_made()
            arguments = small_run.RUN
        told = self._folder / "told"
        command = start(
            *arguments, cwd=self._here, told=told, is_fresh=self._chance.random() < _FRESH_SHARE
        )
        is_killed = kind is not None and self._strike(command, kind)
        if kind is not None and is_killed:
            self._kinds.append(kind.name)
        self._look(command.wait(PATIENCE_S), arguments)
        if kind is None and arguments is not small_run.REPORT:
            self._part.counts["sessions to the end"] += 1
        return is_killed

    def _leave_half_made(self) -> None:
        """Do as the message says of a run that was never fully made: remove it."""
        if self._run.exists():
            ended = start(*small_run.RESUME, cwd=self._here, told=self._folder / "told").wait(60)
            if ended is None or ended.code not in (1, 2) or ended.has_traceback:
                self._part.found("half-made run", killed=self._kinds, said=str(ended))
            shutil.rmtree(self._run)

    def _strike(self, command: Command, kind: Kind) -> bool:
        """Send a kind's signals at a random moment; tell whether they met something alive."""
        end = time.monotonic() + self._delay_s(command, kind)
        if command.has_ended(max(0.0, end - time.monotonic())):
            return False
        pids = self._pids(command, kind)
        if not pids or command.has_ended():
            return False
        for index, number in enumerate(kind.signals):
            if index:
                command.has_ended(self._chance.uniform(0.0, 0.05))
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        return True

    def _delay_s(self, command: Command, kind: Kind) -> float:
        """Draw how long to wait, from the milestone that makes the moment likely to be of use."""
        moment = kind.moment
        if moment == "any":
            moment = self._chance.choice(("start", "trials", "trials", "late"))
        if moment == "layout":
            self._wait_for(command, self._run.exists)
            return self._chance.uniform(0.0, 0.15)
        if moment == "trials":
            self._wait_for(command, lambda: bool(self._of(command, "harness.agent")))
            return self._chance.uniform(0.0, 0.7)
        if moment == "late":
            return self._chance.uniform(0.0, 2.5)
        return self._chance.uniform(0.0, 0.5)

    def _wait_for(self, command: Command, is_there: object) -> None:
        assert callable(is_there)
        while not is_there() and not command.has_ended(0.002):
            pass

    def _of(self, command: Command, program: str) -> list[int]:
        found = descendants(command.pid)
        return [pid for pid, line in found.items() if f" {program} " in f"{line} "]

    def _pids(self, command: Command, kind: Kind) -> Iterable[int]:
        if kind.target == "host":
            return [command.pid]
        if kind.target == "group":
            return [-command.pid]
        if kind.target == "tree":
            return [command.pid, *descendants(command.pid)]
        found: list[int] = []
        while not found and not command.has_ended(0.001):
            found = self._of(command, _PROGRAMS[kind.target])
        return found[:1]

    def _look(self, ended: Ended | None, arguments: tuple[str, ...]) -> None:
        """Compare what was finished before with what is finished now."""
        where = {"during": arguments[0], "killed": self._kinds[-3:]}
        if ended is None:
            self._part.found("hang", **where)
        elif ended.has_traceback:
            self._part.found("traceback", text=ended.last_words, **where)
        if ended is not None:
            self._part.saw("seconds of a session", ended.seconds)
            self._part.saw("bytes of a session", ended.memory_bytes)
        now = small_run.finished(self._run)
        small_run.compare(self._part, self._known, now, **where)
        self._known = now

    def _go_on_to_the_end(self) -> None:
        """Let a session go on undisturbed, check the run, and begin another."""
        lost_ranks = any(kind.startswith("rank") for kind in self._kinds)
        lost_agents = any(kind.startswith("agent") for kind in self._kinds)
        small_run.age(self._run)
        self._session(None)
        killed = list(self._kinds)
        trials = 0 if lost_ranks or lost_agents else 2 * small_run.BLOCKS
        small_run.check_whole(self._part, self._run, trials=trials, killed=killed)
        if left := left_over(self._lane, 10.0):
            self._part.found("processes left", lines=left, killed=killed)
        self._part.counts["runs"] += 1
        self._part.counts["finished trials"] += len(self._known)
        self._begin_run()

    def close(self) -> None:
        """Finish the run at hand."""
        if self._kinds:
            self._go_on_to_the_end()
        shutil.rmtree(self._here, ignore_errors=True)


def make(seed: int, number: int, folder: Path) -> Part:
    """Kill once in each way, in an order of this part's own."""
    part, chance = Part(), random.Random(f"{seed}/kills/{number}")
    lane = Lane(part, folder, chance, os.environ["BAKEOFF_GAUNTLET_LANE"])
    for kind in chance.sample(KINDS, len(KINDS)):
        lane.kill_by(kind)
    lane.close()
    return part


STAGE = Stage("kills", "sessions killed", lambda: 53, make, "kills")
