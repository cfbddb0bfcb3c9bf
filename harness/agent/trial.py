"""This file carries one trial on one node: starts its ranks, waits, ends them, testifies."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from harness.agent import memory, processes
from harness.agent.output import Capture
from harness.agent.protocol import RankCommand, RankEnd, TrialCommand, TrialEnd


@dataclass
class _Rank:
    command: RankCommand
    process: subprocess.Popen[bytes] | None
    pidfd: int | None
    captures: tuple[Capture, Capture]
    end: RankEnd | None = None


class RunningTrial:
    """One trial, driven by the agent's selector: each registered callable is called when ready."""

    def __init__(self, command: TrialCommand, selector: selectors.BaseSelector) -> None:
        self.command = command
        self._selector = selector
        self._cause = "ended"
        self._stopping = False
        self._limit = memory.limit(command.memory_bytes, command.token)
        self._started_wall_ns = time.time_ns()
        self.deadline_s: float | None = time.monotonic() + command.timeout_s
        """When something must be done even if nothing happens (monotonic)."""
        self._ranks: list[_Rank] = []
        self._start()

    def _start(self) -> None:
        """Start the ranks, each under the limit, on cores that it inherits from this process."""
        own_cpus = os.sched_getaffinity(0)
        try:
            for command in self.command.ranks:
                self._ranks.append(self._start_rank(command))
        finally:
            os.sched_setaffinity(0, own_cpus)
        for rank in self._ranks:
            self._watch(rank)

    def _start_rank(self, command: RankCommand) -> _Rank:
        limit = self.command.output_bytes
        captures = (Capture(command.stdout, limit), Capture(command.stderr, limit))
        rank = _Rank(command, None, None, captures)
        try:
            os.sched_setaffinity(0, command.cpus)
            rank.process = subprocess.Popen(
                command.argv,
                env=dict(command.env),
                cwd=command.cwd,
                stdin=subprocess.DEVNULL,
                stdout=captures[0].sink,
                stderr=captures[1].sink,
                start_new_session=True,
                # A system call or two: nothing that a collector's thread may have locked.
                preexec_fn=self._limit.entrance(),
            )
            rank.pidfd = os.pidfd_open(rank.process.pid)
        except OSError as problem:
            what = problem.filename or f"CPUs {command.cpus}"
            text = f"cannot start {command.argv[0]}: {what}: {problem.strerror}"
            rank.end = RankEnd(command.rank, None, None, None, 0.0, 0, False, 0, text)
        except subprocess.SubprocessError:
            text = f"cannot start {command.argv[0]} under the memory limit"
            rank.end = RankEnd(command.rank, None, None, None, 0.0, 0, False, 0, text)
        for capture in captures:
            capture.started()
        return rank

    def _watch(self, rank: _Rank) -> None:
        for capture in rank.captures:
            self._register(capture.source, partial(self._drain, capture))
        if rank.pidfd is not None:
            self._register(rank.pidfd, partial(self._rank_ended, rank))
        else:
            self._stop_peers()

    def _register(self, descriptor: int, action: Callable[[], None]) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ, action)

    def _drain(self, capture: Capture) -> None:
        if not capture.drain():
            self._selector.unregister(capture.source)

    def _rank_ended(self, rank: _Rank) -> None:
        assert rank.process is not None
        assert rank.pidfd is not None
        _, status, usage = os.wait4(rank.process.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        rank.process.returncode = code  # wait4 has reaped it: Popen must not try again
        self._selector.unregister(rank.pidfd)
        os.close(rank.pidfd)
        rank.end = RankEnd(
            rank=rank.command.rank,
            pid=rank.process.pid,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            cpu_s=usage.ru_utime + usage.ru_stime,
            max_rss_bytes=usage.ru_maxrss * 1024,
            stopped=self._stopping,
            dropped_bytes=0,
        )
        if code != 0:
            self._stop_peers()

    def _stop_peers(self) -> None:
        """End the other ranks at once: they would wait for the lost one until the timeout."""
        if not self._stopping and not self.is_over:
            self.stop("rank-failed", self.command.grace_s)

    @property
    def is_over(self) -> bool:
        """Whether every rank has ended."""
        return all(rank.end is not None for rank in self._ranks)

    @property
    def pids(self) -> dict[int, int]:
        """The ranks' processes by rank."""
        return {
            rank.command.rank: rank.process.pid for rank in self._ranks if rank.process is not None
        }

    def stop(self, cause: str, grace_s: float) -> None:
        """Ask the ranks to end, and remember to kill them after the grace."""
        if not self._stopping:
            self._cause = cause
        self._stopping = True
        if grace_s > 0:
            self._signal(signal.SIGTERM)
            self.deadline_s = time.monotonic() + grace_s
        else:
            self._signal(signal.SIGKILL)
            self.deadline_s = None

    def deadline_passed(self) -> None:
        """Do what the deadline was set for."""
        if self._stopping:
            self._signal(signal.SIGKILL)
            self.deadline_s = None
        else:
            self.stop("timeout", self.command.grace_s)

    def _signal(self, number: int) -> None:
        for rank in self._ranks:
            if rank.end is None and rank.process is not None:
                with suppress(ProcessLookupError):  # it ended by itself a moment ago
                    os.killpg(rank.process.pid, number)

    def close(self) -> TrialEnd:
        """Kill what the ranks left behind and say how everything ended."""
        swept = processes.sweep(self.command.token)
        for rank in self._ranks:
            for capture in rank.captures:
                with suppress(KeyError):  # unregistered when its last writer went
                    self._selector.unregister(capture.source)
                capture.close()
        evidence = self._limit.evidence()
        self._limit.close()
        return TrialEnd(
            token=self.command.token,
            cause=self._cause,
            ranks=tuple(_with_dropped(rank) for rank in self._ranks),
            memory=evidence,
            leftovers=swept.killed,
            survivors=swept.survivors,
            started_wall_ns=self._started_wall_ns,
            ended_wall_ns=time.time_ns(),
        )


def _with_dropped(rank: _Rank) -> RankEnd:
    assert rank.end is not None
    dropped = sum(capture.dropped for capture in rank.captures)
    return RankEnd(**{**vars(rank.end), "dropped_bytes": dropped})
