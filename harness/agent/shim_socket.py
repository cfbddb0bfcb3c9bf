"""Accept the shims that an engine starts: each brings the identity of its rank.

The socket lies in Linux's abstract name space, which belongs to the machine and leaves no file;
only processes of the same user are accepted.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from harness.agent.shim import INHERITED
from harness.worker import place

# What an engine tells its ranks; all else a rank gets from the launcher.
_IDENTITY = (
    *("PMI", "OMPI_", "PRTE", "HYD", "I_MPI_", "MPI_LOCAL", "MPICH_", "MPIR_", "SLURM_"),
    "HOROVOD_",
)
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid: unix(7)
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
            env: dict[str, str] = json.loads(self.received)["env"]
            identity = {k: v for k, v in env.items() if not k.startswith("BAKEOFF_")}
            self.rank = place.find(identity).rank
            self.env = {k: v for k, v in identity.items() if k.startswith(_IDENTITY)}
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
    """The listening socket for the shims of one trial."""

    def __init__(self, name: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(f"\0{name}")
        self._listener.listen()

    def fileno(self) -> int:
        """Give the descriptor that becomes readable when a shim connects."""
        return self._listener.fileno()

    def accept(self) -> Shim | None:
        """Accept one shim; refuse a process of another user."""
        connection, _ = self._listener.accept()
        credentials = connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
        )
        pid, user, _ = _CREDENTIALS.unpack(credentials)
        if user != os.getuid():
            connection.close()
            return None
        return Shim(connection, pid)

    def close(self) -> None:
        """Close the socket: no further shim is accepted."""
        self._listener.close()
