"""Let the shims of an engine in: each brings the identity that its rank is to have.

A door is a socket in Linux's abstract name space, which belongs to the machine and leaves no file;
only processes of the same user are let in.
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
    said: bytes = b""
    descriptors: list[int] = field(default_factory=list)
    env: Mapping[str, str] = field(default_factory=dict)
    rank: int | None = None

    def hear(self) -> bool:
        """Take what was said; False once the shim has gone."""
        data, descriptors, _, _ = socket.recv_fds(self.connection, _CHUNK, len(INHERITED))
        self.descriptors += descriptors
        self.said += data
        if self.rank is None and self.said.endswith(b"\n"):
            told: dict[str, str] = json.loads(self.said)["env"]
            theirs = {k: v for k, v in told.items() if not k.startswith("BAKEOFF_")}
            self.rank = place.find(theirs).rank
            self.env = {k: v for k, v in theirs.items() if k.startswith(_IDENTITY)}
        return bool(data)

    def environment(self) -> dict[str, str]:
        """Give the identity, with the descriptors as they are numbered here."""
        here = dict(zip((n for n in INHERITED if n in self.env), self.descriptors, strict=False))
        return {**self.env, **{name: str(number) for name, number in here.items()}}

    def started(self) -> None:
        """Forget the descriptors, which the rank now holds."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()

    def dismiss(self, code: int) -> None:
        """Tell the shim how its rank ended."""
        with suppress(OSError):  # it went first
            self.connection.sendall(f"{code}\n".encode())
        self.started()
        self.connection.close()


class Door:
    """Where the shims of one trial come in."""

    def __init__(self, name: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(f"\0{name}")
        self._listener.listen()

    def fileno(self) -> int:
        """Become readable when somebody knocks."""
        return self._listener.fileno()

    def let_in(self) -> Shim | None:
        """Take a shim in; strangers are sent away."""
        connection, _ = self._listener.accept()
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, user, _ = _CREDENTIALS.unpack(told)
        if user != os.getuid():
            connection.close()
            return None
        return Shim(connection, pid)

    def close(self) -> None:
        """Close the socket: no further shim is accepted."""
        self._listener.close()
