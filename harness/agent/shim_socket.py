"""Accept the shims that an engine starts: each brings the identity of its rank.

The socket lies in a folder that only this user may enter; only processes of this user are accepted.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from harness.agent.shim import INHERITED, identity, peer, socket_path
from harness.worker import place

_CHUNK = 1 << 16


@dataclass
class Shim:
    """One process that waits for its rank to end."""

    connection: socket.socket
    pid: int
    received: bytes = b""
    descriptors: list[int] = field(default_factory=list)
    env: Mapping[str, str] = field(default_factory=dict)
    rank: int | None = None

    def receive(self) -> bool:
        """Receive identity and descriptors; False once the shim has closed its end."""
        data, descriptors, _, _ = socket.recv_fds(self.connection, _CHUNK, len(INHERITED))
        self.descriptors += descriptors
        self.received += data
        if self.rank is None and self.received.endswith(b"\n"):
            self.env = identity(json.loads(self.received)["env"])
            self.rank = place.find(self.env).rank
        return bool(data)

    def environment(self) -> dict[str, str]:
        """Give the identity's variables, with descriptors renumbered for this process."""
        numbers = dict(zip((n for n in INHERITED if n in self.env), self.descriptors, strict=False))
        return {**self.env, **{name: str(number) for name, number in numbers.items()}}

    def started(self) -> None:
        """Close this process's copies of the descriptors, which the rank now holds."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()

    def release(self, code: int) -> None:
        """Send the shim its rank's exit code and close the connection."""
        with suppress(OSError):  # it went first
            self.connection.sendall(f"{code}\n".encode())
        self.started()
        self.connection.close()


class ShimSocket:
    """The listening socket for the shims of one trial, in a folder of its own."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        os.mkdir(folder, 0o700)  # noqa: PTH102  an agent that starts fast
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(socket_path(folder))
        self._listener.listen()

    def fileno(self) -> int:
        """Give the descriptor that becomes readable when a shim connects."""
        return self._listener.fileno()

    def accept(self) -> Shim | None:
        """Accept one shim; refuse a process of another user."""
        connection, _ = self._listener.accept()
        pid, user = peer(connection)
        if user != os.getuid():
            connection.close()
            return None
        return Shim(connection, pid)

    def close(self) -> None:
        """Close the socket and remove its folder: no further shim is accepted."""
        self._listener.close()
        with suppress(OSError):  # whoever cleans /tmp was faster
            os.unlink(socket_path(self._folder))  # noqa: PTH108  as above
            os.rmdir(self._folder)  # noqa: PTH106  as above
