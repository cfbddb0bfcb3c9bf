"""This file measures the torch adapter against the plain script: ``python -m tests.bench.torch``.

Fresh processes alternate both (``pair.py``); each gives one ratio, plain's time over ours, so above
1 the adapter is faster. The verdict is the lower end of the one-sided 95 % interval over processes.
On a shared machine wall time is mostly the neighbours'; CPU time stands beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.adapters.torch.interpreter import ROOT, torch_python

PAIR = Path(__file__).with_name("pair.py")
ENOUGH = 0.97
WALL, CPU = 0, 1

EXPLAINED = {
    ("plain", "aten::add_", "[[], [], []]"): "batch norms count batches, which nobody reads",
}


def say(line: str) -> None:
    """Print one line of the answer."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def pair(workload: str, batch: int, precision: str, rounds: int, number: int) -> Any:
    """Run one process of the comparison."""
    made = subprocess.run(
        [torch_python(), PAIR, workload, *map(str, (batch, precision, rounds, number))],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return json.loads(made.stdout)


def unexplained(listed: dict[str, list[list[Any]]]) -> list[str]:
    """Name the operators that only one of both runs, unless the reason is known."""
    seen = {
        kind: Counter({(name, shapes): count for name, shapes, count in rows})
        for kind, rows in listed.items()
    }
    found = []
    for kind, other in (("ours", "plain"), ("plain", "ours")):
        for (name, shapes), count in sorted((seen[kind] - seen[other]).items()):
            why = EXPLAINED.get((kind, name, shapes))
            say(f"    only {kind}: {count} x {name} {shapes}: {why or 'UNEXPLAINED'}")
            if why is None:
                found.append(name)
    return found


def ratio(times: dict[str, list[list[float]]], over: str, under: str, clock: int) -> float:
    """Give one process's ratio: the median over rounds, each of which has both orders."""
    rounds = range(0, len(times[over]), 2)
    per_round = [
        (times[over][start][clock] + times[over][start + 1][clock])
        / (times[under][start][clock] + times[under][start + 1][clock])
        for start in rounds
    ]
    return statistics.median(per_round)


def interval(ratios: list[float]) -> tuple[float, float]:
    """Give the geometric mean and the lower end of its one-sided 95 % interval (Student's t)."""
    from scipy import stats

    logs = [math.log(value) for value in ratios]
    spread = statistics.stdev(logs) / math.sqrt(len(logs))
    middle = statistics.fmean(logs)
    return math.exp(middle), math.exp(middle - stats.t.ppf(0.95, len(logs) - 1) * spread)


def compare(workload: str, options: argparse.Namespace) -> bool:
    """Compare one workload; print what was found and say whether it is good enough."""
    common = (workload, options.batch, options.precision)
    say(f"{workload}, batch {options.batch}, {options.precision}")
    extras = unexplained(pair(*common, 0, 0))
    made = [pair(*common, options.rounds, number) for number in range(options.processes)]
    lowest = 0.0
    for what, over, under in (("plain / ours", "plain", "ours"), ("A/A", "again", "plain")):
        for name, clock in (("wall", WALL), ("CPU", CPU)):
            ratios = [ratio(times, over, under, clock) for times in made]
            middle, low = interval(ratios)
            if (what, clock) == ("plain / ours", WALL):
                lowest = low
            say(
                f"    {what:12} {name:4} {middle:.3f}, 95 % above {low:.3f}, "
                f"{len(ratios)} processes from {min(ratios):.3f} to {max(ratios):.3f}"
            )
    return not extras and lowest >= ENOUGH


def main() -> int:
    """Compare each workload asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", action="append", choices=("alexnet", "resnet50"))
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    good = [compare(name, options) for name in options.workload or ("alexnet", "resnet50")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
