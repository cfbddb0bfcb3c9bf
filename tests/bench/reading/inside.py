"""Read one epoch of files, or only computes, each time it is told to: one reader.

``python inside.py FOLDER FACTORS`` answers each line of its input with a line of JSON. It runs in
the interpreter of the framework whose loader it is, so it imports the worker's side alone.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from harness.worker.input.open import Own, reading
from harness.worker.network.workload import Reading
from harness.worker.place import Place
from tests.scales import fed


def opened(folder: str, factors: dict[str, Any]) -> Any:
    """Open the files as a trial of a read workload does."""
    workload = Reading("read", "What is read", "any", 1)
    feed = fed(workload, factors, Place(0, 1, 0, 1, "here", "none"), folder)
    own: Own | None = None
    if factors["reader"] == "dataloader":
        from harness.worker.adapters.torch.input.loading import own as loaders

        own = loaders({})
    return reading(workload, feed, own)


def epoch(work: Any) -> dict[str, Any]:
    """Read one epoch, and compute after each batch, as the timed loop does."""
    work.epochs.turn()
    waits = []
    start = time.monotonic_ns()
    while work.epochs.left():
        before = time.monotonic_ns()
        work.fetch()
        waits.append(time.monotonic_ns() - before)
        work.step()
    elapsed = time.monotonic_ns() - start
    told = work.epochs._end()
    return {
        "elapsed_s": elapsed / 1e9,
        "first_s": waits[0] / 1e9,
        "waited_s": sum(waits) / 1e9,
        **{name: told[name] for name in ("bytes", "cache", "cpu_s", "calls")},
    }


def computed(work: Any, steps: int) -> dict[str, Any]:
    """Only compute."""
    start = time.monotonic_ns()
    for _ in range(steps):
        work.step()
    return {"elapsed_s": (time.monotonic_ns() - start) / 1e9}


def main(folder: str, factors: dict[str, Any]) -> None:
    """Serve until the input ends."""
    work = opened(folder, factors)
    for line in sys.stdin:
        steps = int(line)
        told = computed(work, steps) if steps else epoch(work)
        print(json.dumps(told), flush=True)
    work.epochs._loader.close()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
