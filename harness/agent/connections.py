"""Read the connections of ranks that hang from /proc, to find whom they wait for.

What a rank sent and nobody acknowledged lies in the send queue of its connection, what came and it
did not read in the receive queue (proc_net_tcp, Documentation/networking in Linux); which
connections are a rank's stands under /proc/PID/fd. They are read once, when a trial is given up.
"""

from __future__ import annotations

import ipaddress
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

_ESTABLISHED = "01"
_STOPPED = (b"T", b"t")


def rank_connections(pids: Mapping[int, int]) -> tuple[dict[str, Any], ...]:
    """List each rank's connections and whether it is stopped; unreadable ranks are left out."""
    ranks = []
    for rank, pid in sorted(pids.items()):
        with suppress(OSError):
            connections = list(_connections(pid, _sockets(pid)))
            ranks.append({"rank": rank, "stopped": _is_stopped(pid), "connections": connections})
    return tuple(ranks)


def _is_stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  an agent that starts fast
        return file.read().rpartition(b")")[2].split()[0] in _STOPPED


def _sockets(pid: int) -> set[str]:
    """Name the sockets that a process holds by their inodes."""
    sockets = set()
    for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208  as above
        with suppress(OSError):  # closed meanwhile
            target = os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115  as above
            if target.startswith("socket:["):
                sockets.add(target[len("socket:[") : -1])
    return sockets


def _connections(pid: int, sockets: set[str]) -> Iterator[dict[str, Any]]:
    for table in ("tcp", "tcp6"):
        with suppress(OSError), open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:  # noqa: PTH123
            next(file)
            for line in file:
                _, local, remote, state, queues, _, again, _, _, inode, *_ = line.split()
                if state == _ESTABLISHED and inode in sockets:
                    unsent, unread = (int(part, 16) for part in queues.split(":"))
                    yield {
                        "local": _address(local),
                        "remote": _address(remote),
                        "unsent": unsent,
                        "unread": unread,
                        "again": int(again, 16),
                    }


def _address(text: str) -> str:
    """Read an address, which the kernel prints as 32-bit words of this machine's order."""
    digits, _, port = text.partition(":")
    words = struct.unpack(f">{len(digits) // 8}I", bytes.fromhex(digits))
    address = ipaddress.ip_address(struct.pack(f"={len(words)}I", *words))
    mapped = getattr(address, "ipv4_mapped", None)
    return f"{mapped or address}:{int(port, 16)}"
