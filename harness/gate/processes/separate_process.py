"""Call a function in a process of the host's own interpreter, which ends if we do.

What it needs of memory is gone afterwards, and Ctrl-C or a kill does not wait for it. It multiplies
matrices in one thread (``blas_threads.py``).
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from harness.blas_threads import one_thread
from harness.child_process import end_with_parent
from harness.ranks.interrupts import Interrupts

_OF_THE_HOST = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
"""Signals that may reach all processes of a session; the host decides what follows from them."""


class ProcessFailed(Exception):
    """The reason why the function did not return."""


def call(interrupts: Interrupts | None, function: Callable[..., object], *given: Any) -> None:
    """Call a function at a module's top level, and wait for its end, or until a signal came."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_serve, args=(theirs, function, given), daemon=True)
    resource_tracker.ensure_running()  # it would be started below, and let the signals through
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_THE_HOST)  # a child inherits that
    try:
        with one_thread():
            child.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
    theirs.close()
    try:
        while interrupts is not None and ours not in wait([ours, interrupts.fileno()]):
            interrupts.drain()
            if interrupts.count:
                raise SystemExit(interrupts.exit_code)
        why: str | None = ours.recv()
    except EOFError:
        child.join()
        raise ProcessFailed(_ended(child.exitcode)) from None
    finally:
        child.kill()
        child.join()
        ours.close()
    if why is not None:
        raise ProcessFailed(why)


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its process was ended by signal {-code}; is there enough memory?"
    return f"its process ended with {code}"


def _serve(theirs: Connection, function: Callable[..., object], given: tuple[Any, ...]) -> None:
    end_with_parent()
    try:
        function(*given)
    except Exception as problem:  # noqa: BLE001 - raised again where somebody waits
        theirs.send(f"{type(problem).__name__}: {problem}")
    else:
        theirs.send(None)
