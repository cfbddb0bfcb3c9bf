"""A neighbour that comes and goes: it keeps a core busy for a while, and leaves it for a while.

    python -m tests.bench.time_to_answer.neighbour SEED

It ends when its standard input does, with whoever started it.
"""

from __future__ import annotations

import random
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

MEAN_S = 20.0
"""Stays and absences last so long on average, exponentially."""
_LOOKED_S = 0.02


@contextmanager
def coming_and_going(seed: int) -> Iterator[None]:
    """Keep one for as long as something is measured."""
    command = [sys.executable, "-m", "tests.bench.time_to_answer.neighbour", str(seed)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as neighbour:
        try:
            yield
        finally:
            neighbour.kill()


def _is_over(wait_s: float) -> bool:
    return bool(select.select([sys.stdin], [], [], wait_s)[0])


def main(seed: int) -> None:
    """Come and go until the input ends."""
    chance = random.Random(seed)
    while not _is_over(chance.expovariate(1 / MEAN_S)):
        leaves = time.monotonic() + chance.expovariate(1 / MEAN_S)
        while time.monotonic() < leaves:
            looked = time.monotonic() + _LOOKED_S
            while time.monotonic() < looked:
                pass
            if _is_over(0):
                return


if __name__ == "__main__":
    main(int(sys.argv[1]))
