"""Run the caffe program: one timing, one training that is stopped, every word kept.

A training is told to go on without end and is stopped by SIGINT, which Caffe answers by leaving
its loop after the iteration it is in. What it prints goes through the parser, line by line, and
without its secrets to a file beside the nets.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import Callable, Dict, Iterator, Mapping, Optional, Sequence

from harness.worker.adapters.caffe.log import Log, is_time_of_a_pass
from harness.worker.contracts import OutOfMemory, Unsupported
from harness.worker.external_loop import Mark
from harness.worker.redaction.redact import redact_text, secrets_of

GRACE_S = 30.0
MEMORY = ("out of memory", "bad_alloc", "Cannot allocate memory", "ENOMEM")
UNABLE = (
    "Cannot use GPU in CPU-only Caffe",
    "Multi-GPU execution not available",  # built without NCCL
    "Unknown layer type",
    "invalid device ordinal",
)
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)


class CaffeFailed(Exception):
    """Carry Caffe's own last words."""


def environment(threads: int) -> Dict[str, str]:
    """Give the program's environment: log to stderr, in UTC, with so many threads."""
    own = dict(os.environ, GLOG_logtostderr="1", GLOG_minloglevel="0", TZ="UTC")
    for library in ("OMP", "OPENBLAS", "MKL"):
        own[library + "_NUM_THREADS"] = str(threads)
    return own


def version(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Ask the program for its version; builds without one say only their name."""
    asked = subprocess.run(
        [*argv, "--version"],
        env=dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        check=False,
    )
    words = asked.stdout.split()
    return words[words.index("version") + 1] if "version" in words[:-1] else "unknown"


def time_net(argv: Sequence[str], env: Mapping[str, str], log_path: str) -> Log:
    """Run ``caffe time`` to its end."""
    log = Log(time.time_ns())
    with open(log_path, "w", encoding="utf-8") as file, _start(argv, env) as process:
        assert process.stderr is not None
        write = _without_secrets(file.write, env)
        for line in process.stderr:
            write(line)
            log.add(line)
    if process.returncode != 0 or len(log.passes) < 2:
        raise failure(
            log, process.returncode, program=argv[0], verb="time", awaited="Average Forward pass"
        )
    return log


def timing(log_path: str) -> Log:
    """Read what an earlier ``caffe time`` printed."""
    log = Log(time.time_ns())
    with open(log_path, encoding="utf-8") as file:
        for line in file:
            log.add(line)
    return log


def train(argv: Sequence[str], env: Mapping[str, str], log_path: str) -> Iterator[Mark]:
    """Run ``caffe train``; give a mark for its start and each iteration that it shows."""
    log = Log(time.time_ns())
    last: Optional[Mark] = None
    with open(log_path, "w", encoding="utf-8") as file, _start(argv, env) as process:
        assert process.stderr is not None
        write = _without_secrets(file.write, env)
        try:
            for line in process.stderr:
                write(line)
                step = log.add(line)
                if last is None and log.began_ns is not None:
                    last = Mark(0, log.began_ns, {})
                    yield last
                if last is not None and step is not None and step.wall_ns > last.wall_ns:
                    # Iteration N, shown, is N + 1 steps.
                    last = Mark(step.iteration + 1, step.wall_ns, {"loss": step.loss})
                    yield last
        finally:
            _stop(process, write)
    if not log.is_done:
        raise failure(
            log, process.returncode, program=argv[0], verb="train", awaited="Optimization Done"
        )


def failure(log: Log, code: int, *, program: str, verb: str, awaited: str) -> Exception:
    """Say in Caffe's words why it ended; a CHECK that failed aborts with signal 6 (134).

    What a parser complained of comes right before the CHECK. Where nobody gave a reason, what was
    awaited is named; a kill says enough, and nothing that was printed before it explains it.
    """
    words = " ".join(log.complaints + log.fatal)
    ending = _signal(-code if code < 0 else code - 128)  # a shell's code stands for a signal too
    message = "caffe {} ended with exit code {}".format(verb, code)
    if ending is not None:
        message = "caffe {} was ended by signal {} ({})".format(verb, int(ending), ending.name)
    if log.fatal or (log.complaints and ending not in _FROM_OUTSIDE):
        message += ": " + " / ".join(log.complaints[-2:] + log.fatal)
    elif ending == signal.SIGKILL:
        message += ": by somebody else, or for memory"
    elif ending is None:
        message += " and never said '{}'".format(awaited)
        if log.is_empty:
            message += "; it printed nothing at all: is {} Caffe?".format(program)
    if any(word in words for word in MEMORY):
        return OutOfMemory(message)
    if any(word in words for word in UNABLE):
        return Unsupported(log.fatal[-1] if log.fatal else message)
    return CaffeFailed(message)


def _signal(number: int) -> Optional[signal.Signals]:
    try:
        return signal.Signals(number)
    except ValueError:
        return None


def _start(argv: Sequence[str], env: Mapping[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        list(argv),
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        errors="replace",
        bufsize=1,
    )


def _without_secrets(
    write: Callable[[str], object], env: Mapping[str, str]
) -> Callable[[str], object]:
    known = secrets_of(env)
    return lambda text: write(text if is_time_of_a_pass(text) else redact_text(text, known))


def _stop(process: "subprocess.Popen[str]", write: Callable[[str], object]) -> None:
    """Interrupt a training, and insist if it does not end."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        _, rest = process.communicate(timeout=GRACE_S)
        if rest:
            write(rest)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
