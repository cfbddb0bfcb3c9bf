"""Stand in for a rank where an engine starts it: ``python -m harness.agent.shim``.

mpirun and srun give what they start an identity: variables, and with Hydra an open descriptor. The
shim hands both to the agent of its node, which starts the rank with them as its own child, and ends
as the rank ends. Whoever ends the shim ends the rank.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

DOOR = "BAKEOFF_DOOR"
INHERITED = ("PMI_FD",)
"""Variables that hold the number of a descriptor."""
_PATIENCE_S = 60.0


def main() -> int:
    """Send this process's identity to the agent, wait, and give the rank's exit code."""
    with _connected(os.environ[DOOR]) as agent:
        descriptors = [int(os.environ[name]) for name in INHERITED if name in os.environ]
        message = json.dumps({"env": dict(os.environ)}).encode() + b"\n"
        sent = socket.send_fds(agent, [message], descriptors) if descriptors else 0
        agent.sendall(message[sent:])
        answer = b""
        while not answer.endswith(b"\n"):
            data = agent.recv(64)
            if not data:
                return 1
            answer += data
    return int(answer)


def _connected(name: str) -> socket.socket:
    """Connect to the agent, again and again until it listens: the engine may start us first."""
    end = time.monotonic() + _PATIENCE_S
    while True:
        agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            agent.connect(f"\0{name}")
        except ConnectionRefusedError:
            agent.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return agent


if __name__ == "__main__":
    sys.exit(main())
