"""Give a trial's ranks their turns, and stop them while other trials of the block work.

Each rank has a socket: ``harness/worker/windows/turns.py`` says what goes over it. Once all ranks
of the trial have said that they wait, their process groups are stopped: a pool that spins would
take a core from whoever works. What is stopped needs no time limit: its clock stands still as well.

The host gives the word (``turn``, ``finish``) and hears that the trial ``waits``. A turn in which
others kept too many of the trial's cores busy is called disturbed, to both.
"""

from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from harness.agent.protocol import Lines, RankCommand, line
from harness.agent.turns.foreign_use import ForeignUse

_TOLD = ("say", "round", "attempt", "span")
"""What a rank hears of a word."""


class NodeTurns:
    """The turns of one trial on this node."""

    def __init__(
        self,
        ranks: Sequence[RankCommand],
        selector: selectors.BaseSelector,
        *,
        report: Callable[[bytes], None],
        stop: Callable[[], None],
        go_on: Callable[[], None],
        pids: Callable[[], Sequence[int]],
    ) -> None:
        self._selector = selector
        self._report = report
        self._stop = stop
        self._go_on = go_on
        self._pids = pids
        self._sockets: dict[int, socket.socket] = {}
        self._lines: dict[int, Lines] = {}
        self._waiting: dict[int, Mapping[str, Any]] = {rank.rank: {} for rank in ranks}
        """What each rank said when it began to wait; empty while it is at work."""
        self._use = ForeignUse(cpu for rank in ranks for cpu in rank.cpus)
        self._turn: Mapping[str, Any] | None = None
        self._before: Mapping[str, Any] = {"disturbed": "", "foreign_cores": None}

    def seat(self, rank: int) -> socket.socket:
        """Make a rank's socket, and give the end that it inherits."""
        self._sockets[rank], theirs = socket.socketpair()
        self._lines[rank] = Lines()
        return theirs

    def listen(self, rank: int) -> None:
        """Hear from now on what a rank says."""
        action = partial(self._hear, rank)
        self._selector.register(self._sockets[rank], selectors.EVENT_READ, action)

    def _hear(self, rank: int) -> None:
        try:
            data = self._sockets[rank].recv(1 << 12)
        except ConnectionResetError:
            data = b""
        if not data:
            self._selector.unregister(self._sockets[rank])
            return
        for said in self._lines[rank].feed(data):
            self._waiting[rank] = said
        if all(self._waiting.values()):
            self._have_all_wait()

    def _have_all_wait(self) -> None:
        if self._turn is not None:
            self._before = self._judged(self._turn)
            self._turn = None
        self._stop()
        told = (said.get("step_s") for said in self._waiting.values())
        steps_s = [one for one in told if isinstance(one, float)]
        self._report(line("waits", step_s=max(steps_s, default=None), **self._before))

    def _judged(self, turn: Mapping[str, Any]) -> Mapping[str, Any]:
        """Say whether others disturbed a turn that has just ended."""
        foreign, doubt = self._use.end()
        text = ""
        if foreign is not None and (most := turn["most_foreign"]) is not None:
            cores = self._use.cores
            if foreign > max(most["cores"], most["share"] * cores, doubt):
                these = "core" if cores == 1 else f"{cores} cores"
                text = f"others used {foreign:.2f} of the {these}"
        return {"disturbed": text, "foreign_cores": foreign}

    def give(self, word: Mapping[str, Any]) -> None:
        """Pass on a turn, or that there is no further one, to ranks that wait."""
        if not all(self._waiting.values()):
            return
        said = {name: word[name] for name in _TOLD if name in word}
        if word["say"] == "turn":
            self._use.begin(self._pids(), word["helpers"])
            self._turn = word
        self._waiting = {rank: {} for rank in self._waiting}
        self._go_on()
        message = json.dumps({**said, **self._before}).encode() + b"\n"
        for one in self._sockets.values():
            with suppress(OSError):  # it has ended: how, its process tells
                one.sendall(message)

    def close(self) -> None:
        """Close the sockets, and what was read of others' use."""
        self._use.close()
        for one in self._sockets.values():
            with suppress(KeyError):  # it said its last word before
                self._selector.unregister(one)
            one.close()
