"""Carry a run out on this machine without a terminal, where no queue does, and end it again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from harness import locks
from harness.errors import Unavailable, UsageError
from harness.locks import Holder
from harness.run.unattended.resume_command import resume_command
from harness.store.layout import RunPaths
from harness.store.run_directory import opening

SESSION = 0
"""Its log lies where the queue's jobs have theirs, which are counted from 1."""
_LOOK_S = 0.05


def start(paths: RunPaths) -> Path:
    """Begin a session of its own that outlives this one and its terminal; give its log."""
    log = paths.job_log(SESSION)
    paths.files.make_folder(log.parent)
    paths.files.remove(log)
    with paths.files.writing(log) as output:
        session = subprocess.Popen(
            resume_command(paths),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    while opening.holder(paths) is None:
        with suppress(subprocess.TimeoutExpired):
            if session.wait(_LOOK_S) != 0:
                raise Unavailable(f"The session ended at once:\n{paths.files.read_text(log)}")
            break
    return log


def end(paths: RunPaths) -> Holder | None:
    """Ask the session that works on a run to end as by Ctrl-C; give who that was."""
    holder = opening.holder(paths)
    if holder is None or holder.pid is None:
        return None
    if holder.host != socket.gethostname():
        raise UsageError(f"{paths.root}: {holder} works on it; cancel it there.")
    # The name in a file may be anybody's: only who the kernel says has the lock is signalled.
    with paths.files.reading(paths.lock) as file:
        is_held = holder.pid in locks.holders_by_kernel(file.fileno())
    if not is_held:
        raise UsageError(
            f"{paths.root}: its lock names {holder}, which does not hold it. Nothing was ended."
        )
    os.kill(holder.pid, signal.SIGINT)
    return holder
