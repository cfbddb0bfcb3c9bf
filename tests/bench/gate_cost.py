"""Measure what the gate of a cell costs where nothing is kept of it, in CPU seconds.

    python -m tests.bench.gate_cost [FRAMEWORK/WORKLOAD …] [--times 1]

CPU seconds of this process and of all that it starts, so other work on the machine matters little:
of the two references, of the two examinations, of all, with comparing and an agent, and of finding
it again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import psutil

from harness.gate import gate
from harness.gate.jobs import Examiner
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.study.study import load_study

CELLS = ("torch/alexnet", "jax/alexnet", "torch/resnet50", "jax/resnet50")
STUDY = 'title = "What the gate costs"\n[matrix]\nworkload = "{1}"\nframework = "{0}"\nbatch = 4\n'
PARTS = ("float64: reference", "float64: {}", "fp32: reference", "fp32: {}")


def cpu_s() -> float:
    """Add up the CPU seconds of this process and all that it has started."""
    ours = psutil.Process()
    spent = 0.0
    for one in (ours, *ours.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue  # its parent has its seconds now
        spent += times.user + times.system + times.children_user + times.children_system
    return spent


def gated(framework: str, workload: str) -> dict[str, tuple[float, float]]:
    """Examine a cell from nothing; give CPU seconds and seconds of each part."""
    found: Counter[str] = Counter()
    walls: Counter[str] = Counter()
    names: Iterator[str] = iter([one.format(framework) for one in PARTS])

    @contextmanager
    def noted(name: str) -> Iterator[None]:
        spent, began = cpu_s(), time.monotonic()
        yield
        found[name] += cpu_s() - spent
        walls[name] += time.monotonic() - began

    def measured(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            with noted(next(names)):
                return function(*given)

        return call

    with ExitStack() as stack:
        kept = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (kept / "study.toml").write_text(STUDY.format(framework, workload))
        plan = make_plan(load_study(str(kept / "study.toml")), load_platform("local"))
        for name in ("compute", "go"):
            changed = mock.patch.object(Examiner, name, measured(getattr(Examiner, name)))
            stack.enter_context(changed)
        with noted("all"):
            (result,) = gate.ensure(plan, kept=kept / "gate").values()
        with noted("once more"):
            gate.ensure(plan, kept=kept / "gate")
        print(f"{framework}/{workload}: {result}")
    return {name: (found[name], walls[name]) for name in found}


def main() -> None:
    """Print each cell's parts."""
    asked = argparse.ArgumentParser(description="Measure what the gate costs.")
    asked.add_argument("cells", nargs="*", default=CELLS)
    asked.add_argument("--times", type=int, default=1)
    given = asked.parse_args()
    for _ in range(given.times):
        for cell in given.cells:
            framework, workload = cell.split("/")
            for name, (spent_s, wall_s) in gated(framework, workload).items():
                print(f"    {name:22} {spent_s:6.1f} CPU-s in {wall_s:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
