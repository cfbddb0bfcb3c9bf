"""A load that knows itself: one core, 50 MB/s written, 1 GiB held.

Told to, it prints two lines of JSON, at the beginning and the end of what counts: its own clock,
the CPU time it used (getrusage) and the bytes it wrote. It works before and after as it does in
between: it is all the same where a reading falls beside a line.
"""

from __future__ import annotations

import json
import os
import resource
import select
import sys
import time
from pathlib import Path

RATE = 50_000_000
PIECE = bytes(500_000)
LEAST_CPU_S = 2.0
"""The kernel counts in hundredths of a second: on a crowded machine it takes longer to tell."""


def said(written: int) -> None:
    use = resource.getrusage(resource.RUSAGE_SELF)
    now = {"t": time.monotonic_ns(), "cpu_s": use.ru_utime + use.ru_stime, "written": written}
    print(json.dumps(now), flush=True)


def work(folder: str, seconds: float) -> None:
    held = bytearray(1 << 30)
    held[:: resource.getpagesize()] = b"1" * (len(held) // resource.getpagesize())
    print("held", flush=True)
    descriptor = os.open(Path(folder, "written"), os.O_WRONLY | os.O_CREAT)
    written = 0
    begin = time.monotonic()
    ends: tuple[float, float] | None = None
    while True:
        now = time.monotonic()
        if written < RATE * (now - begin):
            # the same few megabytes again and again: no disk need keep up
            written += os.pwrite(descriptor, PIECE, written % (1 << 23))
        if ends is not None and now > ends[0] and time.process_time() > ends[1]:
            said(written)
            ends = None
        if select.select([sys.stdin], [], [], 0)[0]:
            if not sys.stdin.readline():
                return
            said(written)
            ends = now + seconds, time.process_time() + LEAST_CPU_S


if __name__ == "__main__":
    work(sys.argv[1], float(sys.argv[2]))
