"""Answers to signals before the command line is imported, and after it has ended.

Loading the command line takes a tenth of a second, in which Python would answer Ctrl-C with a
traceback. What the interpreter does before it comes here is its own.
"""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Any

DEFAULTS: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""What ends the command, and what Python does then; one that is ignored, as by nohup, stays so."""


def end_at_once() -> None:
    """Let signals end this process at once, with one line."""
    _answer(_end)


def end_in_silence() -> None:
    """Let signals end this process at once, when all is said."""
    _answer(_end_in_silence)


def take_over(number: signal.Signals, handler: Any) -> None:
    """Give a signal another answer, unless it is ignored or somebody else's."""
    if signal.getsignal(number) in (DEFAULTS[number], _end):
        signal.signal(number, handler)


def _answer(handler: Any) -> None:
    for number in DEFAULTS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, b"Interrupted.\n")
    finally:
        _end_in_silence(number, frame)


def _end_in_silence(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)
