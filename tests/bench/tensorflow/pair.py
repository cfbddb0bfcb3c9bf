"""This file is one process of the comparison: adapter and plain script alternate, and time is kept.

    python pair.py FRAMEWORK WORKLOAD BATCH PRECISION ROUNDS NUMBER        prints JSON

Three steppers live side by side: ours, plain, and plain once more (the A/A). Each round runs them
forward and backward (A B C C B A). An odd NUMBER creates and starts them in the opposite order.
With ROUNDS 0 the operations of both traced steps are listed instead of timed.
"""

import importlib
import importlib.util
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from harness.node import feed, place
from harness.node.job import Job, Span

REFERENCES = Path(__file__).parent.parent / "reference"
WARM_STEPS = 2
NO_WORK = {"Const", "Identity", "NoOp", "Placeholder", "ReadVariableOp", "_Arg", "_Retval"}


def ours(framework, name, batch, precision):
    adapter = importlib.import_module("harness.node.adapters." + framework + ".adapter")
    workload = importlib.import_module("workloads." + name).WORKLOAD
    where, factors = place.find({}), {"batch": batch, "precision": precision}
    names = ("trial", "", "", name, "", framework, "", "none")
    job = Job(*names, factors, {}, Span(1), Span(1), 1, tempfile.gettempdir())
    opened = adapter.open(job, where)
    return opened.activity(workload, feed.describe(workload, factors, 1, where), {}).traced


def plain(framework, name, batch, precision):
    path = REFERENCES / (framework + "_train.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.prepare(name, batch, precision)


def timed(step):
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    return time.perf_counter() - wall, time.process_time() - cpu


def operations(traced):
    """Count a traced step's operations by kind and output shapes."""
    seen = Counter(
        (operation.type, str([str(output.shape) for output in operation.outputs]))
        for operation in traced.graph.get_operations()
        if operation.type not in NO_WORK
    )
    return [[kind, shapes, count] for (kind, shapes), count in sorted(seen.items())]


def main(framework, name, batch, precision, rounds, number):
    kinds = {"ours": ours, "plain": plain, "again": plain}
    if not rounds:
        kinds.pop("again")
    # Ours opens first in every process: it sets what TensorFlow reads before it starts.
    importlib.import_module("harness.node.adapters.tensorflow.settings").before_import({}, "trial")
    order = list(kinds) if number % 2 == 0 else list(kinds)[::-1]
    steps = {kind: kinds[kind](framework, name, batch, precision) for kind in order}
    if not rounds:
        return {kind: operations(step) for kind, step in steps.items()}
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
        json.dumps(main(*sys.argv[1:3], int(sys.argv[3]), sys.argv[4], *map(int, sys.argv[5:])))
    )
