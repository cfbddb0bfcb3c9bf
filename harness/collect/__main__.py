"""A collector by itself: ``python -m harness.collect FOLDER PID…``.

It says "ready", then obeys "begin" and "end", a line each, and says so when it has; each time it
records into a new file. It ends with its input.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.collect.collector import Collector
from harness.collect.sampler import Observed


def main(folder: Path, pids: list[int]) -> None:
    """Record whenever told."""
    collector = Collector()
    observed = Observed(ranks=dict(enumerate(pids)), directory=folder)
    collector.prepare()
    _say("ready")
    for count, line in enumerate(sys.stdin):
        word = line.strip()
        if word == "begin":
            collector.begin(folder / f"samples.{count}.bin", observed, {})
        elif word == "end":
            collector.end()
        _say(word)
    collector.end()


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(pid) for pid in sys.argv[2:]])
