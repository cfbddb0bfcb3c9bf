"""Count the CPU seconds that the proof of what was timed adds to a trial, on a machine in use too.

    python -m tests.bench.proof_cpu [FRAMEWORK/WORKLOAD/BATCH/STEPS …]

Of each network: what its trials start from, computed once by the host; a worker that takes so many
steps without a proof, and with one; and what the host judges. By ``proof_cost`` whole sessions are
timed, which needs a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness import plugins
from harness.gate.proof import judging, request
from harness.gate.proof.judging import Proved
from harness.gate.tensors import folders
from harness.store.contained import Contained
from harness.study.framework import framework_info
from harness.worker.job import Span
from harness.worker.network.workload import Training
from tests.adapters.interpreter import told, work

CELLS = ("torch/tinycnn/16/100", "torch/alexnet/4/5", "torch/resnet50/4/4")
FACTORS = {"precision": "fp32", "layout": "default", "device": "cpu", "threads": 1}
"""Of one thread: several wait for each other by spinning, the longer the busier a machine is."""


def cpu_s() -> float:
    """Add up the CPU seconds of this process and of those that it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def taken(do: Callable[[], object]) -> float:
    """Give the CPU seconds that something takes."""
    before = cpu_s()
    do()
    return cpu_s() - before


def measure(framework: str, name: str, batch: int, steps: int) -> str:
    """Count what a cell's trial takes with a proof and without."""
    workload = plugins.workload(name)
    assert isinstance(workload, Training)
    found: list[Proved] = []
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "given"), Path(folder, "proved")

        def trial(place: str, **paths: str) -> None:
            events = work(
                framework,
                Path(folder, place),
                workload=name,
                workload_module=plugins.workload_module(name),
                factors={**FACTORS, "batch": batch},
                warmup=Span(steps=3),
                until=Span(steps=steps),
                paths=paths,
            )
            assert told(events, "finished")

        def judge() -> None:
            declared = [one.tensors for one in framework_info(framework).differs]
            asked, answer = folders.open_folder(given), folders.open_made(Contained(made), made)
            found.append(judging.judge(workload, "fp32", asked, answer, declared))

        start = taken(lambda: request.write_given(workload, batch, 1, given))
        plain = taken(lambda: trial("plain"))
        proved = taken(lambda: trial("with", proof=str(given), proved=str(made)))
        judged = taken(judge)
    return (
        f"{framework} {name}, batch {batch}, {steps} steps: start {start:.1f}, plain {plain:.1f}, "
        f"proved {proved:.1f}, judged {judged:.1f} CPU-s; {found[0].error:.0e} off"
    )


def main() -> None:
    """Print each cell's line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cells", nargs="*", default=CELLS)
    for cell in parser.parse_args().cells:
        framework, name, batch, steps = cell.split("/")
        print(measure(framework, name, int(batch), int(steps)), flush=True)


if __name__ == "__main__":
    main()
