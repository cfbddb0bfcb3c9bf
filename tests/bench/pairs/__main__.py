"""This file measures adapters against plain scripts of the same framework.

    python -m tests.bench.pairs [torch keras …] [--workload resnet50] [--record FILE]

Of each pair it is demanded that both compute the same operations, but for what is explained, and
that the ratio's lower bound is 0.97 or more; each pair's last lines say which of both holds.

Fresh processes alternate both (``inside.py``); each gives one ratio, plain's time over ours, so
above 1 the adapter is faster. The verdict is the lower end of the one-sided 95 % interval over
processes. On a shared machine wall time is partly the neighbours'; CPU time stands beside it. A
record keeps each process's times, and what it holds of this very code is not measured again: a
quiet machine may be had in pieces.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.interpreter import ROOT, python
from tests.bench.pairs import inside as insides
from tests.bench.pairs.ratios import CPU, WALL, interval, ratio

FRAMEWORKS = ("torch", "tensorflow", "tensorflow@1.15", "keras", "jax", "tinygrad")
WORKLOADS = {"tinygrad": ("tinycnn", "alexnet")}
LARGE = ("alexnet", "resnet50")
ENOUGH = 0.97


def say(line: str) -> None:
    """Print one line of the answer."""
    print(line, flush=True)


def inside(framework: str, *given: object) -> Any:
    """Run one process in the framework's interpreter."""
    made = subprocess.run(
        [python(framework), "-m", "tests.bench.pairs.inside", framework, *map(str, given)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise SystemExit(made.stderr)
    return json.loads(made.stdout.splitlines()[-1])


def code(framework: str) -> str:
    """Name the code that is compared: the adapter, what it lowers, and the script."""
    plain = framework.partition("@")[0]
    script = insides.REFERENCES.get(framework, plain) + "_train.py"
    folders = {ROOT / "harness/node/adapters" / plain, Path(__file__).parent / "frameworks"}
    if plain == "keras":
        folders.add(ROOT / "harness/node/adapters/tensorflow")
    files = [path for folder in folders for path in folder.rglob("*.py")]
    files += [ROOT / "tests/bench/reference" / script, Path(insides.__file__)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:12]


def answer(framework: str, workload: str, options: argparse.Namespace, number: int | None) -> Any:
    """Give the times of a process, or what both compute (number None): recorded, or asked now."""
    rounds = 0 if number is None else options.rounds
    about = [framework, workload, options.batch, options.precision, rounds, number or 0]
    row = {"about": about, "code": code(framework)}
    lines: list[str] = []
    if options.record and options.record.exists():
        lines = options.record.read_text(encoding="utf-8").splitlines()
    for known in map(json.loads, lines):
        if row.items() <= known.items():
            return known["answer"]
    found = inside(*about)
    if options.record:
        with options.record.open("a", encoding="utf-8") as record:
            record.write(json.dumps({**row, "answer": found}) + "\n")
    return found


def explained(both: Any) -> bool:
    """Say what only one of both computes; false where a reason is missing."""
    say(f"    the same in both: {both['shared']} operations with their shapes")
    for kind, what, count, why in both["only"]:
        say(f"    only {kind}: {count} x {what[:80]}: {why or 'UNEXPLAINED'}")
    return all(why for *_, why in both["only"])


def compare(framework: str, workload: str, options: argparse.Namespace) -> bool:
    """Compare one workload; print what was found and say whether it is good enough."""
    say(f"{framework}, {workload}, batch {options.batch}, {options.precision}")
    is_same = explained(answer(framework, workload, options, None))
    made = [answer(framework, workload, options, number) for number in range(options.processes)]
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
    is_fast = lowest >= ENOUGH
    say(f"    the same operations: {'holds' if is_same else 'DOES NOT HOLD'}")
    say(f"    at least {ENOUGH} of the script's speed: {'holds' if is_fast else 'DOES NOT HOLD'}")
    return is_same and is_fast


def main() -> int:
    """Compare each framework and workload asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", default=FRAMEWORKS)
    parser.add_argument("--workload", action="append")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # takes the process inside along
    good: dict[str, bool] = {}
    for framework in options.frameworks:
        try:
            python(framework)
        except pytest.skip.Exception as why:
            say(f"{framework} is left out: {why}")
            continue
        for workload in options.workload or WORKLOADS.get(framework, LARGE):
            good[f"{framework} {workload}"] = compare(framework, workload, options)
    say(f"Both hold for {sum(good.values())} of {len(good)} pairs.")
    return 0 if good and all(good.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
