"""This file measures strategies of two ranks against plain scripts with the same strategy.

    python -m tests.bench.strategies [torch-ddp torch-horovod] [--workload resnet50] [--record FILE]

Of each it is demanded that a step of both exchanges the same messages, in number and bytes, and
that the lower end of the one-sided 95 % interval of the ratio, plain's time over ours, is 0.95 or
more over eight pairs of fresh processes; the script against itself (A/A) stands beside it. A record
keeps each pair's times, and what it holds of this very code is not measured again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from harness.launch.launch import Node
from harness.launch.meeting import Seat, variables
from harness.run.offer import free_ports
from tests import needs
from tests.adapters.interpreter import ROOT
from tests.bench.pairs.ratios import WALL, interval, ratio

ENVIRONMENTS = {"torch-ddp": "torch", "torch-horovod": "torch@horovod"}
RANKS = 2
ENOUGH = 0.95


def together(pair: str, *given: object) -> Any:
    """Run both ranks, each on its share of the cores; give what the first one says."""
    python = needs.compiled(ENVIRONMENTS[pair])
    cpus = sorted(os.sched_getaffinity(0))
    each = max(1, len(cpus) // RANKS)
    node = Node(tuple(cpus), free_ports(RANKS + 1, "127.0.0.1"))
    ranks = []
    for rank in range(RANKS):
        own = cpus[rank * each : (rank + 1) * each] or cpus
        told = variables(Seat(rank, 0, rank), [node], RANKS, has_mpi=False)
        argv = ["taskset", "--cpu-list", ",".join(map(str, own)), str(python)]
        argv += ["-m", "tests.bench.strategies.inside", pair, *map(str, given)]
        env = {**os.environ, **told, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(len(own))}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        ranks.append(subprocess.Popen(argv, cwd=ROOT, env=env, **pipes))  # type: ignore[call-overload]
    try:
        said = [one.communicate(timeout=280) for one in ranks]
    finally:
        for one in ranks:
            one.kill()
    if any(one.returncode for one in ranks):
        raise SystemExit("\n".join(errors for _, errors in said))
    return json.loads(said[0][0].splitlines()[-1])


def code(pair: str) -> str:
    """Name the code that is compared: adapter, script, and what compares them."""
    here = Path(__file__).parent
    folder = ROOT / "harness/node/adapters" / pair.partition("-")[0]
    files = [*folder.rglob("*.py"), *here.rglob("*.py"), *here.parent.glob("reference/torch*.py")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:12]


def answer(pair: str, workload: str, options: argparse.Namespace, number: int | None) -> Any:
    """Give the times of a pair, or what both exchange (number None): recorded, or asked now."""
    rounds = 0 if number is None else options.rounds
    about = [pair, workload, options.batch, rounds, number or 0]
    row = {"about": about, "code": code(pair)}
    if options.record and options.record.exists():
        for known in map(json.loads, options.record.read_text(encoding="utf-8").splitlines()):
            if row.items() <= known.items():
                return known["answer"]
    found = together(*about)
    if options.record:
        with options.record.open("a", encoding="utf-8") as record:
            record.write(json.dumps({**row, "answer": found}) + "\n")
    return found


def compare(pair: str, workload: str, options: argparse.Namespace) -> bool:
    """Compare one strategy; print what was found and say whether it is good enough."""
    print(f"{pair}, {workload}, {RANKS} ranks, batch {options.batch} each", flush=True)
    seen = answer(pair, workload, options, None)
    is_same = seen["ours"] == seen["plain"] and bool(seen["ours"])
    print(f"    {sum(seen['ours'].values())} exchanges a step in ours", flush=True)
    for what in sorted({*seen["ours"], *seen["plain"]}):
        counts = [seen[kind].get(what, 0) for kind in ("ours", "plain")]
        if counts[0] != counts[1]:
            print(f"    {what}: {counts[0]} in ours, {counts[1]} in plain")
    print(f"    the same exchanges: {'holds' if is_same else 'DOES NOT HOLD'}", flush=True)
    if options.processes < 2:
        return is_same
    made = [answer(pair, workload, options, number) for number in range(options.processes)]
    for what, over, under in (("A/A", "again", "plain"), ("plain / ours", "plain", "ours")):
        turns = [{kind: [(t, 0.0) for t in one[kind]] for kind in one} for one in made]
        ratios = [ratio(times, over, under, WALL) for times in turns]
        middle, low = interval(ratios)
        print(
            f"    {what:12} {middle:.3f}, 95 % above {low:.3f}, {len(ratios)} pairs "
            f"from {min(ratios):.3f} to {max(ratios):.3f}",
            flush=True,
        )
    is_fast = low >= ENOUGH
    print(f"    at least {ENOUGH} of the script's speed: {'holds' if is_fast else 'DOES NOT HOLD'}")
    return is_same and is_fast


def main() -> int:
    """Compare each strategy asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", nargs="*", metavar="STRATEGY", default=list(ENVIRONMENTS))
    parser.add_argument("--workload", default="resnet50")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--processes", type=int, default=8, help="0: count exchanges only")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    good = [compare(pair, options.workload, options) for pair in options.pairs]
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
