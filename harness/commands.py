"""Run a command of this machine within a time limit, and say clearly why it gave no answer."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from signal import Signals
from typing import IO

from harness import private_file, waiting
from harness.errors import Unavailable

_MOST_BYTES = 1 << 24
_READ_BYTES = 1 << 16
_LAST_LINES = 3


class Unanswered(Unavailable):
    """A command did not end in time, or printed without end: nobody knows what it did."""


@dataclass(frozen=True)
class Answer:
    """How a command ended, and what it printed."""

    what: str
    """The words that name the command in a message."""
    code: int
    stdout: str
    stderr: str

    def required(self) -> str:
        """Give what was printed; refuse a command that failed, with its last lines."""
        if self.code == 0:
            return self.stdout
        lines = (self.stderr.strip() or self.stdout.strip() or "It printed nothing.").splitlines()
        shown = "".join(f"\n    {line}" for line in lines[-_LAST_LINES:])
        raise Unavailable(
            f"{self.what} ended with {self.code}:" + (shown if len(lines) > 1 else f" {lines[0]}")
        )


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    what: str = "",
    awaited: str = "",
    private: str = "",
) -> Answer:
    """Run a command without input, and give how it ended; ``what`` names it in messages.

    Where it takes long, people are told what is ``awaited``. ``private`` is what its private file
    holds.
    """
    where = f"{what}: " if what else ""
    what = what or argv[0]
    try:
        with private_file.opened(argv, private) as (words, descriptors):
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=env,
                pass_fds=descriptors,
            )
    except FileNotFoundError:
        raise Unavailable(f"{where}{argv[0]} is no program here.") from None
    except OSError as problem:
        raise Unavailable(f"{where}{argv[0]}: {problem.strerror}.") from problem
    with process:
        try:
            notice = waiting.Notice(f"{awaited} (at most {timeout_s:g} s)" if awaited else "")
            stdout, stderr = _printed(process, time.monotonic() + timeout_s, notice)
        except TimeoutError:
            process.kill()
            raise Unanswered(f"{what} did not end within {timeout_s:g} s.") from None
        except OverflowError:
            process.kill()
            raise Unanswered(f"{what} printed more than {_MOST_BYTES >> 20} MiB.") from None
        except BaseException:
            process.kill()
            raise
    return Answer(what, process.returncode, stdout, stderr)


def signal_text(number: int) -> str:
    """Name a signal by its number and, where it has one, its name."""
    try:
        return f"signal {number} ({Signals(number).name})"
    except ValueError:  # between the first and the last of the real-time ones
        return f"signal {number}"


def _printed(
    process: subprocess.Popen[bytes], deadline_s: float, notice: waiting.Notice
) -> tuple[str, str]:
    """Read both streams to their ends, and wait for the process."""
    assert process.stdout is not None
    assert process.stderr is not None
    pieces: dict[IO[bytes], bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe, text in pieces.items():
            selector.register(pipe, selectors.EVENT_READ, text)
        while selector.get_map():
            ready = selector.select(max(0.0, min(deadline_s, notice.due_s) - time.monotonic()))
            if time.monotonic() >= notice.due_s:
                notice.give()
            elif not ready:
                raise TimeoutError
            for key, _ in ready:
                piece = os.read(key.fd, _READ_BYTES)
                key.data.extend(piece)
                if not piece:
                    selector.unregister(key.fileobj)
                elif len(key.data) > _MOST_BYTES:
                    raise OverflowError
    try:
        process.wait(max(0.0, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    stdout, stderr = (text.decode(errors="replace") for text in pieces.values())
    return stdout, stderr
