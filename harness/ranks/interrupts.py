"""Count requests to stop the host: SIGINT (Ctrl-C), SIGTERM and SIGHUP."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_POLITE = (signal.SIGTERM, signal.SIGHUP)
_SIGNALS = (signal.SIGINT, *_POLITE)


class Interrupts:
    """How often this process was asked to stop, and a descriptor that wakes who sleeps."""

    def __init__(self) -> None:
        self.count = 0
        self.exit_code = 0
        """What a shell calls an end by the last of them."""
        self._reader: socket.socket
        self._writer: socket.socket

    def fileno(self) -> int:
        """Become readable with each interrupt."""
        return self._reader.fileno()

    def drain(self) -> None:
        """Forget the wake-ups; the count stays."""
        try:
            while self._reader.recv(64):
                pass
        except BlockingIOError:
            pass

    def open(self) -> None:
        """Make the descriptor."""
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def close(self) -> None:
        """Close the descriptor."""
        self._reader.close()
        self._writer.close()

    def take_over(self, exit_code: int) -> None:
        """Count an interrupt that another object received."""
        self.count += 1
        self.exit_code = exit_code

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.exit_code = 128 + number

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Count signals instead of ending on them, as long as the context lasts.

        A hang-up that is ignored stays ignored: whoever started us with nohup wants to log out.
        """
        self.open()
        is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        counted = [one for one in _SIGNALS if one != signal.SIGHUP or not is_ignored]
        earlier = {number: signal.signal(number, self._handle) for number in counted}
        wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in earlier.items():
                signal.signal(number, handler)
            self.close()
