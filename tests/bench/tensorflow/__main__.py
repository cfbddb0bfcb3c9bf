"""This file measures the tensorflow and keras adapters against plain scripts, for both in turn.

    python -m tests.bench.tensorflow [--framework keras] [--workload resnet50] [--processes 8]

Fresh processes alternate both (``pair.py``); each gives one ratio, plain's time over ours, so above
1 the adapter is faster. The statistics are those of the torch adapter's comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.adapters.tensorflow.interpreter import ROOT, python
from tests.bench.torch.__main__ import ENOUGH, interval, ratio, say

PAIR = Path(__file__).with_name("pair.py")
WALL, CPU = 0, 1
PADS = "a pad stops at the last row that a window reads; the script pads one row more"
EXPLAINED = {
    "Pad": PADS,
    "PadV2": PADS + ", and pads a maximum with zeros, which a ReLU before it allows",
    "MaxPoolGrad": PADS,
    "Conv2DBackpropInput": PADS,
    "IdentityN": "Keras passes all gradients through one, in the order of its variables",
}


def pair(
    framework: str, options: argparse.Namespace, workload: str, rounds: int, number: int
) -> Any:
    """Run one process of the comparison."""
    given = (framework, workload, options.batch, options.precision, rounds, number)
    made = subprocess.run(
        [python(framework), PAIR, *map(str, given)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return json.loads(made.stdout.splitlines()[-1])


def unexplained(listed: dict[str, list[list[Any]]]) -> list[str]:
    """Name the operations that only one of both runs, unless the reason is known."""
    seen = {
        kind: Counter({(name, shapes): count for name, shapes, count in rows})
        for kind, rows in listed.items()
    }
    found = []
    for kind, other in (("ours", "plain"), ("plain", "ours")):
        for (name, shapes), count in sorted((seen[kind] - seen[other]).items()):
            why = EXPLAINED.get(name)
            say(f"    only {kind}: {count} x {name} {shapes[:60]}: {why or 'UNEXPLAINED'}")
            if why is None:
                found.append(name)
    return found


def compare(framework: str, workload: str, options: argparse.Namespace) -> bool:
    """Compare one workload; print what was found and say whether it is good enough."""
    say(f"{framework}, {workload}, batch {options.batch}, {options.precision}")
    extras = unexplained(pair(framework, options, workload, 0, 0))
    numbers = range(options.processes)
    made = [pair(framework, options, workload, options.rounds, number) for number in numbers]
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
    """Compare each framework and workload asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", action="append", choices=("tensorflow", "keras"))
    parser.add_argument("--workload", action="append", choices=("alexnet", "resnet50"))
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    good = [
        compare(framework, workload, options)
        for framework in options.framework or ("tensorflow", "keras")
        for workload in options.workload or ("alexnet", "resnet50")
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
