"""This file counts what this process has sent over TCP, as the kernel counted it.

Ranks of one machine meet over TCP in gloo, gRPC and Horovod alike, so that bytes need nobody's
word. Sockets that were closed are lost to it. Python 3.7 grammar.
"""

import os
import socket
import struct
from pathlib import Path

ANY_FAMILY = (socket.AF_INET, socket.AF_INET6)
ESTABLISHED = 1
SENT_AT = 200  # tcpi_bytes_sent in linux/tcp.h's struct tcp_info, 4.19 and later


def sent():
    """Give the bytes sent by the connections that are open."""
    return sum(_sent(int(one.name)) for one in list(Path("/proc/self/fd").iterdir()))


def _sent(number):
    try:
        copy = os.dup(number)
    except OSError:  # gone meanwhile
        return 0
    try:
        one = socket.socket(fileno=copy)
    except OSError:  # no socket
        os.close(copy)
        return 0
    with one:
        if one.family not in ANY_FAMILY or one.type != socket.SOCK_STREAM:
            return 0
        told = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, SENT_AT + 8)
    if told[0] != ESTABLISHED or len(told) < SENT_AT + 8:
        return 0
    return struct.unpack_from("Q", told, SENT_AT)[0]
