"""Wait for ranks that an engine starts: each comes to this agent's socket as a shim.

The engine's command runs a shim where a rank is to be; the shim says which rank it stands for, and
the agent starts that one as its own child. A shim ends when its rank has ended.
"""

from __future__ import annotations

import selectors
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from harness.agent.protocol import RankCommand
from harness.agent.shim_socket import Shim, ShimSocket

_READ = selectors.EVENT_READ


class AwaitedRanks:
    """The ranks of a trial that no shim has come for yet, and the shims of the others."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        *,
        start: Callable[[RankCommand, Sequence[int]], None],
        shim_closed: Callable[[], None],
    ) -> None:
        self._selector = selector
        self._start = start
        self._shim_closed = shim_closed
        self._awaited: dict[int, RankCommand] = {}
        self._shims: dict[int, Shim] = {}
        self._socket: ShimSocket | None = None
        self.pids: set[int] = set()
        """The processes of all shims."""

    def __bool__(self) -> bool:
        """Tell whether a rank is still awaited."""
        return bool(self._awaited)

    def expect(self, commands: Sequence[RankCommand]) -> None:
        """Count on a shim for each of these ranks."""
        self._awaited = {command.rank: command for command in commands}

    def listen(self, folder: str) -> None:
        """Open the socket that shims come to."""
        self._socket = ShimSocket(folder)
        self._selector.register(self._socket.fileno(), _READ, self._accept)

    def _accept(self) -> None:
        assert self._socket is not None
        shim = self._socket.accept()
        if shim is not None:
            self.pids.add(shim.pid)
            self._selector.register(
                shim.connection.fileno(), _READ, partial(self._receive_from, shim)
            )

    def _receive_from(self, shim: Shim) -> None:
        """Start the rank whose identity has arrived."""
        was_unknown = shim.rank is None
        if not shim.receive():
            self._selector.unregister(shim.connection.fileno())
            shim.connection.close()
            if shim.rank is not None:
                self._shims.pop(shim.rank, None)
            self._shim_closed()
        elif was_unknown and shim.rank in self._awaited:
            command = self._awaited.pop(shim.rank)
            self._shims[shim.rank] = shim
            env = {**shim.environment(), **command.env}
            self._start(replace(command, env=env), shim.descriptors)
            shim.started()
            if not self._awaited:
                self._close()

    def release(self, rank: int, code: int) -> None:
        """Let the shim of a rank that ended end too, as its rank did."""
        shim = self._shims.pop(rank, None)
        if shim is not None:
            self._selector.unregister(shim.connection.fileno())
            shim.release(code if code >= 0 else 128 - code)

    def give_up(self) -> Sequence[RankCommand]:
        """Await nobody any more; give the ranks that no shim came for."""
        commands = tuple(self._awaited.values())
        self._awaited.clear()
        self._close()
        return commands

    def _close(self) -> None:
        if self._socket is not None:
            self._selector.unregister(self._socket.fileno())
            self._socket.close()
            self._socket = None
