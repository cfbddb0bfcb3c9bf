"""This file compares the clocks of two agents: one answers, the other asks, over UDP.

``python -m harness.agent.clock answer PORT KEY`` answers until its input closes;
``python -m harness.agent.clock ask HOST PORT KEY BURSTS EVERY_S`` asks and prints what it found.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from harness.errors import Unavailable
from harness.stats.clock import Exchange, fit

BURST = 8
_PATIENCE_S = 1.0
_QUESTION = struct.Struct("<Iq")
_ANSWER = struct.Struct("<Iqqq")
_SEAL = 16


def _sealed(key: bytes, body: bytes) -> bytes:
    return body + hmac.digest(key, body, hashlib.sha256)[:_SEAL]


def _opened(key: bytes, data: bytes, size: int) -> bytes | None:
    """Give a message's body if somebody who knows the key wrote it."""
    body = data[:size]
    return body if hmac.compare_digest(_sealed(key, body), data) else None


def answer(listener: socket.socket, key: bytes) -> None:
    """Answer one question with the times of its coming and of the answer's going."""
    data, sender = listener.recvfrom(256)
    received = time.monotonic_ns()
    body = _opened(key, data, _QUESTION.size)
    if body is not None:
        number, asked = _QUESTION.unpack(body)
        # the seal costs microseconds: the last look at the clock has to be sealed as well
        reply = _ANSWER.pack(number, asked, received, time.monotonic_ns())
        listener.sendto(_sealed(key, reply), sender)


def ask(address: tuple[str, int], key: bytes, *, count: int = BURST) -> list[Exchange]:
    """Ask so many times in a row; lost questions are left out, none answered is Unavailable."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.connect(address)
        for number in range(count):
            asked = time.monotonic_ns()
            try:
                asker.send(_sealed(key, _QUESTION.pack(number, asked)))
                exchange = _heard(asker, key, number)
            except ConnectionRefusedError:
                exchange = None
            if exchange is not None:
                found.append(exchange)
    if not found:
        raise Unavailable(f"nobody at {address[0]}:{address[1]} told its clock")
    return found


def _heard(asker: socket.socket, key: bytes, number: int) -> Exchange | None:
    """Wait for the answer to one question; an old one that comes late is passed over."""
    end = time.monotonic() + _PATIENCE_S
    while (left_s := end - time.monotonic()) > 0:
        if not select.select([asker], [], [], left_s)[0]:
            break
        data = asker.recv(256)
        back = time.monotonic_ns()
        body = _opened(key, data, _ANSWER.size)
        if body is not None:
            told, asked, received, answered = _ANSWER.unpack(body)
            if told == number:
                return Exchange(asked, received, answered, back)
    return None


def _serve(port: int, key: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("", port))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            ready, _, _ = select.select([listener.fileno(), 0], [], [])
            if listener.fileno() in ready:
                answer(listener, key)
            if 0 in ready and not os.read(0, 1):
                return


def main(arguments: Sequence[str]) -> None:
    """Answer, or ask."""
    if arguments[0] == "answer":
        _serve(int(arguments[1]), arguments[2].encode())
        return
    host, port, key, bursts, every_s = arguments[1:]
    taken = []
    for index in range(int(bursts)):
        if index:
            time.sleep(float(every_s))
        taken.append(ask((host, int(port)), key.encode()))
    told = {"line": asdict(fit(taken)), "exchanges": [[asdict(x) for x in b] for b in taken]}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
