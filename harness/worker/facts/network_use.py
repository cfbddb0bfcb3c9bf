"""Say which network interfaces really carried a rank's messages, and how much each.

The kernel counts the bytes of every TCP connection (tcp(7), TCP_INFO; struct tcp_info in
linux/tcp.h), and a connection's own address belongs to an interface. So it is known, for gloo,
gRPC, NCCL's and MPI's sockets alike and without asking any of them, whether a job that was meant
for a fast network went over another. What is no TCP (shared memory, InfiniBand's verbs) leaves no
bytes here. It is read after the last window, while the connections are open.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import struct
from typing import Any, Dict, Optional

_TCP_INFO = getattr(socket, "TCP_INFO", 11)
_ESTABLISHED = 1
_TOTAL_RETRANSMITS, _ACKED, _RECEIVED, _LENGTH = 100, 120, 128, 136
_SIOCGIFADDR = 0x8915


def carried() -> Dict[str, Dict[str, int]]:
    """Add up, by interface, what this process's TCP connections have sent and received."""
    names = _interfaces()
    found: Dict[str, Dict[str, int]] = {}
    for number in _open_files():
        told = _connection(number)
        if told is None:
            continue
        address, sent, received, again = told
        interface = names.get(address) or ("lo" if address.startswith("127.") else address)
        entry = found.setdefault(
            interface, {"sent": 0, "received": 0, "connections": 0, "retransmits": 0}
        )
        entry["sent"] += sent
        entry["received"] += received
        entry["connections"] += 1
        entry["retransmits"] += again
    return found


def _open_files() -> Any:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return []


def _connection(number: int) -> Optional[Any]:
    """Read one file if it is an established TCP connection."""
    try:
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            return None
        # a duplicate, or closing it would close the framework's own
        with socket.socket(fileno=os.dup(number)) as own:
            if own.family not in (socket.AF_INET, socket.AF_INET6):
                return None
            told = own.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _LENGTH)
            address = own.getsockname()[0]
    except OSError:  # closed meanwhile, or not TCP
        return None
    if len(told) < _LENGTH or told[0] != _ESTABLISHED:
        return None
    (again,) = struct.unpack_from("=I", told, _TOTAL_RETRANSMITS)
    (sent,) = struct.unpack_from("=Q", told, _ACKED)
    (received,) = struct.unpack_from("=Q", told, _RECEIVED)
    return address.replace("::ffff:", ""), sent, received, again


def _interfaces() -> Dict[str, str]:
    """Give the interface of each of this host's addresses."""
    found: Dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(asking.fileno(), _SIOCGIFADDR, request)
            except OSError:  # it has no address
                continue
            found[socket.inet_ntoa(answer[20:24])] = name
    try:
        with open("/proc/net/if_inet6", encoding="ascii") as lines:
            for line in lines:
                digits, _, _, _, _, name = line.split()
                found[socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))] = name
    except OSError:
        pass  # no IPv6 here
    return found
