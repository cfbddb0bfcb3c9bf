"""Tell by a pipe whether who read from it is gone: no pid, no sleep."""

from __future__ import annotations

import select
from typing import IO

PATIENCE_S = 60.0


def wait_until_nobody_reads(end: IO[str]) -> None:
    """Wait at a pipe's writing end for the last reader to end."""
    poll = select.poll()
    poll.register(end, 0)  # an error, nobody reads, is told without being asked for
    assert poll.poll(PATIENCE_S * 1000), "somebody still reads"
