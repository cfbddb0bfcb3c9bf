"""Measure what large simulated studies cost: planned, played and stored.

Each runs in a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.run.session import start
from harness.study.study import load_study
from harness.verdicts.ended_trial import doubt
from tests.bench.host_cost import Silent

SECONDS, BYTES = 60.0, 2**30

MANY_NODES = """title = "A thousand nodes"
[matrix]
workload = "resnet50"
framework = "torch"
strategy = "ddp"
device = "gpu"
batch = 32
nodes = {nodes}
[measure]
trials = {trials}
warmup = "3 steps"
until = "20 steps"
"""
MANY_TRIALS = """title = "Ten thousand trials"
[matrix]
workload = "resnet50"
framework = ["torch", "tensorflow"]
batch = [{batches}]
precision = ["fp32", "bf16"]
[measure]
trials = {trials}
warmup = "3 steps"
until = "20 steps"
"""


def studies(part: int = 1) -> dict[str, str]:
    """Give the studies by what they are, or so many times less of each."""
    batches = ", ".join(str(8 * count) for count in range(1, 26))
    return {
        "1,000 nodes x 100 trials": MANY_NODES.format(nodes=1000 // part, trials=100 // part),
        "10,000 trials of one node": MANY_TRIALS.format(batches=batches, trials=100 // part),
    }


def carried_out(text: str, folder: Path) -> int:
    """Plan a study, play it and store it, as `bakeoff run` does; give how many trials it has."""
    file = folder / "large.toml"
    file.write_text(text, encoding="utf-8")
    study = load_study(file)
    plan = make_plan(study, load_platform("simulated-cluster"))
    result = start(
        plan, root=folder / "run", study_text=study.text, observer=Silent(), rejects=doubt
    )
    assert result.done == result.total == len(plan.order), result
    return result.total


def main(arguments: list[str]) -> None:
    """Print the time and the memory of each beside what they are allowed to be."""
    if arguments:
        with tempfile.TemporaryDirectory() as folder:
            carried_out(studies()[arguments[0]], Path(folder))
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, time.perf_counter())
        return
    for name in studies():
        began = time.perf_counter()
        told = subprocess.run(
            [sys.executable, "-m", "tests.bench.simulated_cost", name],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        peak, ended = (float(word) for word in told.split())
        print(
            f"{name:<26} {ended - began:5.1f} s   {(ended - began) / SECONDS:.2f} x allowed   "
            f"{peak / 2**20:5.0f} MiB   {peak / BYTES:.2f} x allowed"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
