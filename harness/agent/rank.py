"""Start one rank of a trial: its process, bound and limited, with its output captured."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness import private_file
from harness.agent.memory_limit import Limit
from harness.agent.output import Capture, streams
from harness.agent.protocol import RankCommand, TrialCommand
from harness.store.outcome import RankEnd

_LACKS = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""What a node has no more of: memory, open files."""


@dataclass
class Rank:
    """A rank's process, and how it ended."""

    command: RankCommand
    process: subprocess.Popen[bytes] | None
    pidfd: int | None
    captures: tuple[Capture, Capture]
    end: RankEnd | None = None
    started_ns: int | None = None


def start_rank(
    trial: TrialCommand,
    command: RankCommand,
    host: str,
    limit: Limit,
    descriptors: Sequence[int],
) -> Rank:
    """Start a rank on its cores, which this process takes on too; one that cannot has ended."""
    rank = Rank(command, None, None, captures := streams(trial, command))
    try:
        os.sched_setaffinity(0, command.cpus)
        rank.started_ns = time.monotonic_ns()
        with private_file.opened(command.argv, command.private) as (argv, private):
            rank.process = subprocess.Popen(
                argv,
                env=dict(command.env),
                cwd=command.cwd,
                stdin=subprocess.DEVNULL,
                stdout=captures[0].sink,
                stderr=captures[1].sink,
                start_new_session=True,
                pass_fds=(*descriptors, *private),
                # A system call or two: nothing that a collector's thread may have locked.
                preexec_fn=limit.enter_function(),
            )
        rank.pidfd = os.pidfd_open(rank.process.pid)
    except OSError as problem:
        what = f"{problem.filename or f'CPUs {command.cpus}'}: {problem.strerror}"
        if problem.errno == errno.EAGAIN:
            what = "this user may have no further process (`ulimit -u`)"
        text = f"cannot start {command.argv[0]}: {what}"
        rank.end = RankEnd(command.rank, host, problem=text, refused=_is_refused(problem))
    except subprocess.SubprocessError:
        text = f"cannot start {command.argv[0]} under the memory limit"
        rank.end = RankEnd(command.rank, host, problem=text)
    for capture in captures:
        capture.started()
    return rank


def _is_refused(problem: OSError) -> bool:
    """Tell what a node lacks from what is wrong with a program, which is named: fork(2)."""
    if problem.errno == errno.EAGAIN:
        return True
    return problem.filename is None and problem.errno in _LACKS


def with_dropped(rank: Rank) -> RankEnd:
    """Give how a rank ended, with what it printed beyond what is kept."""
    assert rank.end is not None
    return replace(rank.end, dropped_bytes=sum(capture.dropped for capture in rank.captures))
