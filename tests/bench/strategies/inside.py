"""This file is one rank of a comparison: adapter and plain script train by turns, in one group.

    python -m tests.bench.strategies.inside STRATEGY WORKLOAD BATCH ROUNDS NUMBER

Rank 0 prints JSON. As in the comparison of frameworks (``tests/bench/pairs``) three steppers live
side by side, ours, plain, and plain once more (the A/A), and each round runs them forward and
backward. All ranks take the same number of steps and begin each turn together. With ROUNDS 0 the
exchanges of one step of ours and of plain are counted instead. Python 3.7 grammar.
"""

import importlib
import json
import os
import sys
import tempfile
import time

from harness.node import feed, place
from harness.node.job import Job, Span

WARM_STEPS = 3
TURN_S = 0.5
ORDERS = ("ours plain again", "again plain ours", "plain again ours")


def opened(framework, strategy, name, batch):
    """Meet the other ranks through the adapter; give what makes our activity."""
    adapter = importlib.import_module("harness.node.adapters." + framework + ".adapter")
    workload = importlib.import_module("workloads." + name).WORKLOAD
    where = place.find(os.environ)
    threads = len(os.sched_getaffinity(0))
    factors = {"batch": batch, "precision": "fp32", "threads": threads}
    names = ("trial", "", "", name, "", framework, "", strategy)
    job = Job(*names, factors, {}, Span(1), Span(1), 1, tempfile.gettempdir())
    made = adapter.open(job, where)
    described = feed.describe(workload, factors, 1, where)
    return lambda: made.activity(workload, described, {})


def timed(step, wait, steps):
    """Give the seconds of one step."""
    start = time.perf_counter()
    for _ in range(steps):
        step()
    wait()
    return (time.perf_counter() - start) / steps


def main(pair, name, batch, rounds, number):
    framework, _, strategy = pair.partition("-")
    make_ours = opened(framework, strategy, name, batch)
    script = importlib.import_module("tests.bench.reference." + pair.replace("-", "_") + "_train")
    made = {}
    for kind in ORDERS[number % len(ORDERS)].split():
        made[kind] = make_ours() if kind == "ours" else script.prepare(name, batch)
    ours = made["ours"]
    steps = dict(made, ours=ours.step)
    waits = {"ours": ours.sync}
    last = 0.0
    for kind, step in steps.items():
        for _ in range(WARM_STEPS):
            last = timed(step, waits.get(kind, lambda: None), 1)
    if not rounds:
        side = importlib.import_module(
            "tests.bench.strategies.frameworks." + pair.replace("-", "_")
        )
        return {kind: side.collectives(steps[kind]) for kind in ("ours", "plain")}
    turn = max(1, round(TURN_S / ours.agree(last)))
    seconds = {kind: [] for kind in steps}
    order = list(steps)
    for _ in range(rounds):
        for kind in order + order[::-1]:
            ours.agree(0.0)
            seconds[kind].append(timed(steps[kind], waits.get(kind, lambda: None), turn))
    return seconds


if __name__ == "__main__":
    answer = main(*sys.argv[1:3], *map(int, sys.argv[3:]))
    if place.find(os.environ).rank == 0:
        sys.stdout.write("\n" + json.dumps(answer) + "\n")
        sys.stdout.flush()
    os._exit(0)  # whoever leaves a group waits for nobody here
