"""Carry out one trial on one node: start its ranks, wait, end them, report."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from harness.agent import memory_limit, processes
from harness.agent.awaited_ranks import AwaitedRanks
from harness.agent.heartbeat import Observer
from harness.agent.output import Capture, streams
from harness.agent.protocol import RankCommand, TrialCommand, TrialEnd
from harness.agent.rank import Rank, start_rank, with_dropped
from harness.agent.shim import folder_here
from harness.agent.turns.turns import NodeTurns
from harness.store.outcome import RankEnd
from harness.worker.place import TURNS


class RunningTrial:
    """One trial, driven by the agent's selector: each registered callable is called when ready.

    In an agent's process only: whatever child that has left at the end is taken for the trial's.
    """

    def __init__(
        self,
        command: TrialCommand,
        selector: selectors.BaseSelector,
        report: Callable[[bytes], None],
        *,
        observer: Observer,
        problem: str | None = None,
    ) -> None:
        self.command = command
        self._selector = selector
        self._observer = observer
        self._host = socket.gethostname()
        self._cause = "ended"
        self._waits: tuple[Mapping[str, Any], ...] = ()
        self._stopping = False
        self._limit = memory_limit.limit(command.memory_bytes, command.token)
        self._started_wall_ns = time.time_ns()
        self.deadline_s: float | None = time.monotonic() + command.timeout_s
        """When something must be done even if nothing happens (monotonic)."""
        self._ranks: list[Rank] = []
        self._awaited = AwaitedRanks(
            selector,
            start=lambda rank, descriptors: self._start([rank], descriptors),
            shim_closed=self._stop_peers,
        )
        self._starter: Rank | None = None
        self._left_s = 0.0
        """What is left of the timeout while the ranks stand still."""
        self._turns = self._new_turns(report) if command.turns else None
        if problem is not None:
            self._awaited.expect(command.ranks)
            self._give_up(stopped=False, problem=problem, refused=True)
        elif command.door is None:
            self._start(command.ranks)
        else:
            self._await_shims(command.door)

    def _new_turns(self, report: Callable[[bytes], None]) -> NodeTurns:
        return NodeTurns(
            self.command.ranks,
            self._selector,
            report=report,
            stop=self._stand_still,
            go_on=self._go_on,
            pids=lambda: tuple(self.pids.values()),
        )

    def _stand_still(self) -> None:
        """Stop the ranks, their clock and their observer; those that are to end must hear it."""
        if not self._stopping:
            self._signal(signal.SIGSTOP)
            self._observer.stand_still()
            self._left_s = (self.deadline_s or 0.0) - time.monotonic()
            self.deadline_s = None

    def _go_on(self) -> None:
        if not self._stopping:
            self._observer.go_on()
            self._signal(signal.SIGCONT)
            self.deadline_s = time.monotonic() + self._left_s

    def give(self, word: Mapping[str, Any]) -> None:
        """Give the ranks a turn, or tell them that there is no further one."""
        if self._turns is not None and not self._stopping:
            self._turns.give(word)

    def _await_shims(self, door: str) -> None:
        """Listen for the ranks' shims; run the engine's command if this agent is the one to."""
        self._awaited.expect(self.command.ranks)
        folder = folder_here(door)
        try:
            self._awaited.listen(folder)
        except OSError as problem:
            why = f"cannot make {folder}: {problem.strerror}"
            self._give_up(stopped=False, problem=why, refused=True)
            return
        if self.command.starter is not None:
            own_cpus = os.sched_getaffinity(0)
            self._starter = self._start_rank(self.command.starter)
            os.sched_setaffinity(0, own_cpus)
            self._watch(self._starter)

    def _start(self, commands: Sequence[RankCommand], descriptors: Sequence[int] = ()) -> None:
        """Start ranks, each under the limit, on cores that it inherits from this process."""
        own_cpus = os.sched_getaffinity(0)
        try:
            started = [self._start_rank(command, descriptors) for command in commands]
        finally:
            os.sched_setaffinity(0, own_cpus)
        self._ranks += started
        for rank in started:
            self._watch(rank)

    def _start_rank(self, command: RankCommand, descriptors: Sequence[int] = ()) -> Rank:
        seat = None if self._turns is None else self._turns.seat(command.rank)
        if seat is not None:
            command = replace(command, env={**command.env, TURNS: str(seat.fileno())})
            descriptors = (*descriptors, seat.fileno())
        rank = start_rank(self.command, command, self._host, self._limit, descriptors)
        if seat is not None:
            seat.close()
        return rank

    def _watch(self, rank: Rank) -> None:
        for capture in rank.captures:
            self._register(capture.source, partial(self._drain, capture))
        if self._turns is not None:
            self._turns.listen(rank.command.rank)
        if rank.pidfd is not None:
            self._register(rank.pidfd, partial(self._rank_ended, rank))
        else:
            self._release_and_report(rank, 1)

    def _register(self, descriptor: int, action: Callable[[], None]) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ, action)

    def _drain(self, capture: Capture) -> None:
        if not capture.drain():
            self._selector.unregister(capture.source)

    def _rank_ended(self, rank: Rank) -> None:
        assert rank.process is not None
        assert rank.pidfd is not None
        _, status, usage = os.wait4(rank.process.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        rank.process.returncode = code  # wait4 has reaped it: Popen must not try again
        self._selector.unregister(rank.pidfd)
        os.close(rank.pidfd)
        rank.end = RankEnd(
            rank=rank.command.rank,
            host=self._host,
            pid=rank.process.pid,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            cpu_s=usage.ru_utime + usage.ru_stime,
            max_rss_bytes=usage.ru_maxrss * 1024,
            stopped=self._stopping,
            started_ns=rank.started_ns,
        )
        self._release_and_report(rank, code)

    def _release_and_report(self, rank: Rank, code: int) -> None:
        """Release the shim of a rank that ended; end the other ranks if it failed."""
        self._awaited.release(rank.command.rank, code)
        if rank is self._starter and self._awaited:
            rank.captures[1].drain()
            why = rank.captures[1].last_message()
            ended_early = (
                f"{rank.command.argv[0]} ended with {code} before it started this rank: {why}"
            )
            end = rank.end
            problem = (end.problem if end is not None else None) or ended_early
            self._give_up(stopped=False, problem=problem, refused=end is not None and end.refused)
            self._stop_peers()
        elif code != 0:
            self._stop_peers()

    def _give_up(self, *, stopped: bool, problem: str | None, refused: bool = False) -> None:
        """End the ranks that no shim came for."""
        for command in self._awaited.give_up():
            end = RankEnd(
                command.rank, self._host, stopped=stopped, problem=problem, refused=refused
            )
            self._ranks.append(Rank(command, None, None, streams(self.command, command), end))

    def _stop_peers(self) -> None:
        """End the other ranks at once: they would wait for the lost one until the timeout."""
        if not self._stopping and not self.is_over:
            self.stop("rank-failed", self.command.grace_s)

    @property
    def is_over(self) -> bool:
        """Whether every rank has ended, and the engine's command."""
        return not self._awaited and all(rank.end is not None for rank in self._processes)

    @property
    def has_begun(self) -> bool:
        """Whether every rank has started."""
        return not self._awaited

    @property
    def _processes(self) -> list[Rank]:
        return self._ranks if self._starter is None else [*self._ranks, self._starter]

    @property
    def pids(self) -> dict[int, int]:
        """The ranks' processes by rank."""
        return {
            rank.command.rank: rank.process.pid for rank in self._ranks if rank.process is not None
        }

    def stop(self, cause: str, grace_s: float) -> None:
        """Send the ranks SIGTERM and set the deadline for SIGKILL; without a grace kill at once."""
        if not self._stopping:
            self._cause = cause
            if cause in ("timeout", "cancel"):
                from harness.agent.connections import rank_connections  # hardly a trial is given up

                self._waits = rank_connections(self.pids)
        self._stopping = True
        self._give_up(stopped=True, problem=None)
        if self._turns is not None:
            self._signal(signal.SIGCONT)
        if grace_s > 0:
            self._signal(signal.SIGTERM)
            self.deadline_s = time.monotonic() + grace_s
        else:
            self._signal(signal.SIGKILL)
            self.deadline_s = None

    def deadline_passed(self) -> None:
        """Stop a trial that timed out; kill ranks that outlived the grace."""
        if self._stopping:
            self._signal(signal.SIGKILL)
            self.deadline_s = None
        else:
            self.stop("timeout", self.command.grace_s)

    def _signal(self, number: int) -> None:
        for rank in self._processes:
            if rank.end is None and rank.process is not None:
                with suppress(ProcessLookupError):  # it ended by itself a moment ago
                    os.killpg(rank.process.pid, number)

    def _was_ending(self, pid: int) -> bool:
        """Whether a process is a shim whose rank has ended, or the engine's, which was stopped."""
        starter = self._starter.process if self._starter is not None else None
        if pid in self._awaited.pids or starter is None or not self._stopping:
            return pid in self._awaited.pids
        with suppress(ProcessLookupError):
            return os.getsid(pid) == starter.pid
        return False

    def close(self) -> TrialEnd:
        """Kill processes that the ranks left over and report how everything ended."""
        swept = processes.sweep(self.command.token, expected=self._was_ending)
        for rank in self._processes:
            for capture in rank.captures:
                with suppress(KeyError):  # unregistered when its last writer went
                    self._selector.unregister(capture.source)
                capture.close()
        if self._turns is not None:
            self._turns.close()
        evidence = self._limit.evidence()
        self._limit.close()
        return TrialEnd(
            token=self.command.token,
            cause=self._cause,
            ranks=tuple(
                with_dropped(rank) for rank in sorted(self._ranks, key=lambda r: r.command.rank)
            ),
            memory=evidence,
            leftovers=swept.killed,
            survivors=swept.survivors,
            started_wall_ns=self._started_wall_ns,
            ended_wall_ns=time.time_ns(),
            waits=self._waits,
        )
