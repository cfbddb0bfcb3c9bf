"""Let the ranks of one trial meet, through files in the trial's folder.

Ranks that only read have no framework to meet through. Each appends a line with its number to its
own file, ``meeting.R``; the first rank waits for all of them and appends the largest number to its
own, which is the answer. Every file is opened anew with leave to create it each time: a network
file system asks its server then, and neither trusts what it held nor remembers that nothing was
there. A rank that is lost ends its trial by the agent's word; the time limit is for what nobody
watches.
"""

from __future__ import annotations

import os
import time
from typing import List

TIMEOUT_S = 15 * 24 * 3600.0
"""Longer than ``measure.timeout`` may be, which ends a trial whose epochs are too long."""
_SHORTEST_S, _LONGEST_S = 0.0005, 0.02
_SHARE = 0.05
"""Of the time waited so far, until it is looked again."""


class Absent(Exception):
    """Say which rank did not come."""


class RankBarrier:
    """One rank's way to the others."""

    def __init__(self, folder: str, rank: int, size: int, timeout_s: float = TIMEOUT_S) -> None:
        self._paths = [os.path.join(folder, "meeting.{}".format(one)) for one in range(size)]
        self._rank = rank
        self._timeout_s = timeout_s
        self._met = 0

    def agree(self, value: float = 0.0) -> float:
        """Wait until every rank is here; give the largest value that one of them offers."""
        if self._rank == 0:
            others = range(1, len(self._paths))
            value = max([value] + [self._heard(rank) for rank in others])
            self._say(value)
        else:
            self._say(value)
            value = self._heard(0)
        self._met += 1
        return value

    def _say(self, value: float) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(self._paths[self._rank], flags, 0o666)
        try:
            os.write(descriptor, "{!r}\n".format(value).encode("ascii"))
        finally:
            os.close(descriptor)

    def _heard(self, rank: int) -> float:
        began = time.monotonic()
        while True:
            said = _lines(self._paths[rank])
            if len(said) > self._met:
                return float(said[self._met])
            waited_s = time.monotonic() - began
            if waited_s > self._timeout_s:
                raise Absent(
                    "rank {} did not come to meeting {} within {:g} s".format(
                        rank, self._met, self._timeout_s
                    )
                )
            time.sleep(min(_LONGEST_S, max(_SHORTEST_S, _SHARE * waited_s)))


def _lines(path: str) -> List[bytes]:
    """Read the lines that are whole."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with open(descriptor, "rb", buffering=0) as file:
        return file.read().split(b"\n")[:-1]
