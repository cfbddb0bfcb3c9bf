"""Identify a node's monotonic clock and answer the host's questions about it.

The questions travel as messages of the host's protocol, over whatever carries that: a pipe, ssh,
srun. No port has to be open between nodes for clocks to be compared.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.agent.protocol import line
from harness.machine.small_files import boot_id


def identity(root: Path = Path("/")) -> str:
    """Name the monotonic clock that this process reads: this boot's, in this time namespace."""
    boot, namespace = boot_id(root), ""
    if not boot:  # another system than Linux: a host has one clock
        return socket.gethostname()
    with suppress(OSError):  # before Linux 5.6 there are no time namespaces
        namespace = str((root / "proc/self/ns/time").readlink())
    return f"{boot} {namespace}".strip()


def answer(message: Mapping[str, Any], received_ns: int) -> bytes:
    """Answer a question with the times at which it was received and answered."""
    number = message["number"]
    return line("clock", number=number, received_ns=received_ns, answered_ns=time.monotonic_ns())
