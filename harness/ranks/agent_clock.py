"""Compare the clock of one agent with this host's, in messages of their protocol.

A burst of questions before each trial, one every half minute in it, and one after it: enough to fit
a line and its bound (``stats/clock.py``). Of a burst the quickest exchange is kept. An agent that
reads this host's own clock is asked nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from harness.agent.clock import identity
from harness.agent.protocol import line
from harness.stats.clock import RoundTrip, quickest

BURST = 8
EVERY_S = 30.0


class ClockComparison:
    """What is known of one agent's clock; its caller sends and receives the messages."""

    def __init__(self, clock: str) -> None:
        self.is_own = clock == identity()
        self._number = 0
        self._asked_ns = 0
        self._left = 0
        self._burst: list[RoundTrip] = []
        self._quickest: list[RoundTrip] = []
        self._begun_s = 0.0

    @property
    def is_asking(self) -> bool:
        """Whether an answer is awaited."""
        return self._left > 0

    def begin(self) -> bytes:
        """Start a burst; give the first question, to be sent at once."""
        self._burst = []
        self._left = 0 if self.is_own else BURST
        self._begun_s = time.monotonic()
        return self._question()

    def begin_if_due(self) -> bytes:
        """Start a burst if the last one is old enough; give the question to send, or nothing."""
        return self.begin() if time.monotonic() - self._begun_s >= EVERY_S else b""

    def _question(self) -> bytes:
        if not self._left:
            return b""
        self._number += 1
        question = line("clock", number=self._number)
        self._asked_ns = time.monotonic_ns()
        return question

    def take_answer(self, message: Mapping[str, Any], back_ns: int) -> bytes:
        """Take an answer that was read at ``back_ns``; give the next question, or nothing."""
        if message["number"] != self._number or not self._left:
            return b""  # late: that burst was given up
        self._burst.append(
            RoundTrip(self._asked_ns, message["received_ns"], message["answered_ns"], back_ns)
        )
        self._left -= 1
        if not self._left:
            self._end()
        return self._question()

    def give_up(self) -> None:
        """Stop waiting for this burst; the answers received so far count."""
        self._left = 0
        self._end()

    def _end(self) -> None:
        if self._burst:
            self._quickest.append(quickest(self._burst))
            self._burst = []

    def record(self) -> dict[str, Any]:
        """Give the round trips since the last call, as an outcome stores them."""
        quickest_trips, self._quickest = self._quickest, []
        return {
            "own": self.is_own,
            "exchanges": [[one.t1, one.t2, one.t3, one.t4] for one in quickest_trips],
        }
