"""Stand in for a rank where an engine starts it: ``python -m harness.agent.shim``.

mpirun and srun give what they start an identity: variables, and with Hydra an open descriptor. The
shim hands both to the agent of its node, which starts the rank with them as its own child, and ends
as the rank ends. Whoever ends the shim ends the rank.

They meet at a socket in a folder that the agent makes for its user alone. Both ask the kernel whose
process the other one is, and nothing but the identity is sent.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time
from collections.abc import Mapping

DOOR = "BAKEOFF_DOOR"
INHERITED = ("PMI_FD",)
"""Variables that hold the number of a descriptor."""
_IDENTITY = (
    *("PMI", "OMPI_", "PRTE", "HYD", "I_MPI_", "MPI_LOCAL", "MPICH_", "MPIR_", "SLURM_"),
    "HOROVOD_",
)
"""What an engine tells its ranks begins so; all else a rank gets from the launcher."""
_SECRET = "SLURM_JWT"  # noqa: S105  the name of a variable: with it anybody is this user to Slurm
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid: unix(7)
_PATIENCE_S = 60.0


def new_door() -> str:
    """Name where a trial's shims go, the same on all nodes; nobody else can guess it."""
    return f"/tmp/bakeoff-{os.urandom(8).hex()}"  # noqa: S108  made by the agent, for its user


def folder_here(door: str) -> str:
    """Name this node's folder behind a door: nodes may share /tmp."""
    return f"{door}-{socket.gethostname()[:48]}"  # a socket's path has 107 bytes at most: unix(7)


def socket_path(folder: str) -> str:
    """Give the path of the socket in its folder."""
    return f"{folder}/shims"


def identity(environ: Mapping[str, str]) -> dict[str, str]:
    """Choose the variables by which an engine tells a rank who it is."""
    return {
        name: value
        for name, value in environ.items()
        if name.startswith(_IDENTITY) and name != _SECRET
    }


def peer(connection: socket.socket) -> tuple[int, int]:
    """Ask the kernel for the process and the user at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _ = _CREDENTIALS.unpack(credentials)
    return pid, user


def main() -> int:
    """Send this process's identity to the agent, wait, and give the rank's exit code."""
    with _connected(socket_path(folder_here(os.environ[DOOR]))) as agent:
        descriptors = [int(os.environ[name]) for name in INHERITED if name in os.environ]
        message = json.dumps({"env": identity(os.environ)}).encode() + b"\n"
        sent = socket.send_fds(agent, [message], descriptors) if descriptors else 0
        agent.sendall(message[sent:])
        answer = b""
        while not answer.endswith(b"\n"):
            data = agent.recv(64)
            if not data:
                return 1
            answer += data
    return int(answer)


def _connected(path: str) -> socket.socket:
    """Connect to the agent, again and again until it listens: the engine may start us first."""
    end = time.monotonic() + _PATIENCE_S
    while True:
        agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            agent.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            agent.close()
            if time.monotonic() > end:
                sys.exit(
                    f"bakeoff: no agent listened at {path} on {socket.gethostname()} within "
                    f"{_PATIENCE_S:.0f} s"
                )
            time.sleep(0.05)
        except OSError as problem:
            sys.exit(f"bakeoff: {path} on {socket.gethostname()}: {problem.strerror}")
        else:
            break
    if peer(agent)[1] != os.getuid():
        sys.exit(f"bakeoff: {path} on {socket.gethostname()} belongs to another user")
    return agent


if __name__ == "__main__":
    sys.exit(main())
