"""Take turns with the other trials of a block: wait for the word, settle, measure, wait again.

The agent holds the other end of a socket, one a rank (``harness/agent/turns/``); a line is JSON:

    to the agent    {"say": "ready", "step_s": S}      warm, and waits; S seconds is the
                                                       shortest step of the last warm-up windows
                    {"say": "turned"}                  the turn is over, and it waits
    to the rank     {"say": "turn", "round", "attempt", "span": {"seconds": S} or {"steps": K}}
                    {"say": "finish"}                  there is no further turn

Each word to the rank says of the turn before whether others disturbed it (``disturbed``,
``foreign_cores``): until then its events are held back, for a disturbed turn is measured again and
its windows must never count. The process may be stopped whenever it waits.

The first steps of a turn find caches and threads as the others left them, and are slower: a turn
begins by settling, for as long as it will measure but no longer than a rate takes to settle. That
is recorded and never counts. What is reached in it after the first windows, beside what is measured
then, tells what taking turns would do to a rate that counted it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
from typing import Any, Dict

from harness.worker.job import Span
from harness.worker.windows.windows import Windows, rest

SETTLING_WINDOWS = 2
SETTLING_S = 0.3
"""A rate changes for about a quarter of a second after another trial's turn."""
FEWEST_STEPS = 3
_PR_SET_PDEATHSIG = 1  # prctl(2)


class Abandoned(Exception):
    """Say that nobody is left who would give the word."""


class RankTurns:
    """One rank's end of the socket."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._socket = socket.socket(fileno=descriptor)
        self._rest = b""
        _end_with_parent()

    def take(self, windows: Windows, steps: int, step_s: float) -> None:
        """Measure in windows of ``steps``, a turn at a time, until there is no further one."""
        with self._socket:
            self._take(windows, steps, step_s)

    def _take(self, windows: Windows, steps: int, step_s: float) -> None:
        windows.begin("wait")
        number = 0
        word = self._ask(say="ready", step_s=step_s)
        while word["say"] == "turn":
            number += 1
            start = windows.clock()
            windows.turn_number = number
            windows.begin("settle")
            windows.events.hold()
            span = Span(**word["span"])
            turn = {name: word[name] for name in ("round", "attempt")}
            turn.update(_settle(windows, steps, span))
            windows.begin("measure")
            turn["work_s"] = _measure(windows, steps, span)
            windows.turn_number = None
            turn.update(number=number, steps=windows.done, start=start, end=windows.clock())
            windows.begin("wait")
            word = self._ask(say="turned")
            windows.events.release("disturbed" if word["disturbed"] else "measure")
            turn.update({name: word[name] for name in ("disturbed", "foreign_cores")})
            windows.events.say("turn", **turn)

    def _ask(self, **told: Any) -> Dict[str, Any]:
        """Say where this rank is, and wait for the next word."""
        self._socket.sendall(json.dumps(told).encode() + b"\n")
        while b"\n" not in self._rest:
            data = self._socket.recv(1 << 12)
            if not data:
                raise Abandoned("the agent that gives the turns has gone")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        word: Dict[str, Any] = json.loads(line)
        return word


def _settle(windows: Windows, steps: int, span: Span) -> Dict[str, float]:
    """Give the steps that were done after the first windows, and the slowest rank's seconds."""
    for _ in range(SETTLING_WINDOWS):
        windows.take(steps)
    first, seconds = windows.done, _take(windows, steps)
    while not (windows.is_over(Span(seconds=SETTLING_S)) or windows.is_over(span)):
        seconds += _take(windows, steps)
    return {"settled_steps": windows.done - first, "settled_s": seconds}


def _measure(windows: Windows, steps: int, span: Span) -> float:
    """Take whole windows until a span is over; give the seconds of the slowest rank in them."""
    seconds = 0.0
    while windows.done < FEWEST_STEPS or not windows.is_over(span):
        seconds += _take(windows, rest(steps, span, windows.done))
    return seconds


def _take(windows: Windows, steps: int) -> float:
    done = windows.done
    each_s = windows.take(steps)
    return each_s * (windows.done - done)


def _end_with_parent() -> None:
    """Have the kernel kill this process when the agent dies: stopped, it would see no socket close.

    Linux alone knows how; elsewhere the host finds the process by its mark.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
