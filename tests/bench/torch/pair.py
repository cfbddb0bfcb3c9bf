"""This file is one process of the comparison: adapter and plain script alternate, and time is kept.

    python pair.py WORKLOAD BATCH PRECISION ROUNDS NUMBER        prints JSON

Three steppers live side by side: ours, plain, and plain once more (the A/A). Each round runs them
forward and backward (A B C C B A). An odd NUMBER creates and starts them in the opposite order.
With ROUNDS 0 the operators of one step of ours and of plain are listed instead of timed.
"""

import importlib
import importlib.util
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from harness.node import feed, place
from harness.node.adapters.torch import adapter
from harness.node.job import Job, Span

REFERENCE = Path(__file__).parent.parent / "reference" / "torch_train.py"
WARM_STEPS = 2


def ours(name, batch, precision):
    workload = importlib.import_module("workloads." + name).WORKLOAD
    where, factors = place.find({}), {"batch": batch, "precision": precision}
    none = Span(steps=1)
    job = Job(
        "trial",
        "",
        "",
        name,
        "",
        "torch",
        "",
        "none",
        factors,
        {},
        none,
        none,
        seed=1,
        directory="",
    )
    opened = adapter.open(job, where)
    return opened.activity(workload, feed.describe(workload, factors, 1, where), {}).step


def plain(name, batch, precision):
    spec = importlib.util.spec_from_file_location("torch_train", REFERENCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.prepare(name, batch, precision)


def timed(step):
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    return time.perf_counter() - wall, time.process_time() - cpu


def operators(step):
    step()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        step()
    seen = Counter()
    for event in profiler.events():
        if event.name.startswith("aten::"):
            seen[event.name, str(event.input_shapes)] += 1
    return [[name, shapes, count] for (name, shapes), count in sorted(seen.items())]


def main(name, batch, precision, rounds, number):
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    kinds = {"ours": ours, "plain": plain, "again": plain}
    if not rounds:
        kinds.pop("again")
    order = list(kinds) if number % 2 == 0 else list(kinds)[::-1]
    steps = {kind: kinds[kind](name, batch, precision) for kind in order}
    if not rounds:
        return {kind: operators(step) for kind, step in steps.items()}
    seconds = {kind: [] for kind in kinds}
    for step in steps.values():
        for _ in range(WARM_STEPS):
            step()
    for _ in range(rounds):
        for kind in order + order[::-1]:
            seconds[kind].append(timed(steps[kind]))
    return seconds


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:])))
    )
