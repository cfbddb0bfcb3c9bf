"""Show how the building of an environment goes: a spinner, or plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.cli.output import note, visible
from harness.environments.build import BuildListener

if TYPE_CHECKING:
    from rich.status import Status

_QUIET_S = 2.0


class Lines:
    """Write what stays, and what goes on no more often than every two seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def say(self, text: str) -> None:
        """Write a sentence."""
        note(text)
        self._last = time.monotonic()

    def doing(self, text: str) -> None:
        """Write it if nothing was written for a while."""
        if time.monotonic() - self._last >= _QUIET_S:
            self.say(f"  {text} …")


class Spinner:
    """Replace what goes on in place."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def say(self, text: str) -> None:
        """Write a sentence above the spinner."""
        self._status.console.print(visible(text), markup=False, highlight=False, soft_wrap=True)

    def doing(self, text: str) -> None:
        """Replace the text beside the spinner."""
        self._status.update(visible(text).replace("[", r"\["))


@contextlib.contextmanager
def listening() -> Iterator[BuildListener]:
    """Give the listener that shows a build's progress."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield Spinner(status)
