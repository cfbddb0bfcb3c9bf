"""Measure what a rank can reach at most here, by the kernels that its framework's layers end in.

Each kernel is a workload of kind ``ceiling``, stepped by the loop that times everything else, for a
second; the layers of the cell's network follow (``layers_alone.py``). Nothing of it is compared: it
says how far below the machine a cell's step stays.
"""

from __future__ import annotations

import importlib
import os
import time
from dataclasses import replace
from typing import Any, Callable, Dict, Optional, Sequence

from harness.worker import feed, loop
from harness.worker.contracts import OutOfMemory, Unsupported
from harness.worker.events import Events
from harness.worker.facts import layers_alone
from harness.worker.job import Job, Span
from harness.worker.network.workload import Training, Workload
from harness.worker.place import Place
from harness.worker.windows.windows import Clock

KERNELS = ("gemm", "convolution", "triad")
"""Workloads, those that compute first: the last one needs most memory."""
MEASURED_S = 1.0
WARMUP, UNTIL = Span(steps=1), Span(seconds=MEASURED_S)
PARTS = (8, 4, 2, 1)
"""A kernel is tried at these parts of its size, the smallest first."""
CACHES = "/sys/devices/system/cpu/cpu{}/cache"


def measure(
    adapter: Any,
    workload: Workload,
    job: Job,
    place: Place,
    events: Events,
    clock: Clock = time.monotonic_ns,
) -> None:
    """Step each kernel that the framework has, then the layers of the cell's own network."""
    _step_kernels(adapter, job, place, events, clock)
    if isinstance(workload, Training):
        layers_alone.measure(adapter, workload, job, place, events, clock)


def _step_kernels(adapter: Any, job: Job, place: Place, events: Events, clock: Clock) -> None:
    """Step each kernel that is not known, and say which; a fault of one is its own."""
    cache_bytes = None if job.factors.get("device") == "gpu" else last_level_bytes()
    for name in KERNELS:
        if name in job.known:
            continue
        workload = importlib.import_module("workloads." + name).WORKLOAD
        about: Dict[str, Any] = {"kernel": name, "unit": workload.unit, "cache_bytes": cache_bytes}
        fed = feed.describe(workload, job.scale, seed=job.seed, place=place)

        def sized(part: int, workload: Any = workload, fed: feed.Feed = fed) -> Any:
            sizes = {"size": workload.size // part, "device_size": workload.device_size // part}
            return adapter.activity(replace(workload, **sizes), fed, job.options)

        try:
            activity = _as_large_as_fits(sized, workload.unit, clock)
            events.say("ceiling", work=activity.units[workload.unit], why="", **about)
            loop.run(activity, events, warmup=WARMUP, until=UNTIL, clock=clock)
        except (Unsupported, OutOfMemory, MemoryError) as fault:
            events.say("ceiling", work=None, why=str(fault) or type(fault).__name__, **about)


def _as_large_as_fits(sized: Callable[[int], Any], unit: str, clock: Clock) -> Any:
    """Give a kernel at the largest of its sizes whose step is likely to fit into what is measured.

    Where a processor lacks the instructions of a precision, one product of whole size takes a
    minute.
    """
    fitting, step_s = None, 0.0
    for part in PARTS:
        larger = sized(part)
        if fitting and step_s * larger.units[unit] / fitting.units[unit] > MEASURED_S:
            break
        fitting, step_s = larger, _second_step(larger, clock)
    return fitting


def _second_step(activity: Any, clock: Clock) -> float:
    """Give the seconds of a step that is not the first."""
    activity.step()
    activity.sync()
    began = clock()
    activity.step()
    activity.sync()
    return (clock() - began) / 1e9


def last_level_bytes(cpus: Optional[Sequence[int]] = None) -> Optional[int]:
    """Add up the last-level caches that these CPUs have, by default the rank's; None if unknown."""
    found: Dict[str, int] = {}
    for cpu in sorted(os.sched_getaffinity(0)) if cpus is None else cpus:
        folder = CACHES.format(cpu)
        try:
            levels = {
                int(_read(folder, name, "level")): name
                for name in os.listdir(folder)
                if name.startswith("index") and _read(folder, name, "type") != "Instruction"
            }
            last = levels[max(levels)]
            found[_read(folder, last, "shared_cpu_list")] = _bytes(_read(folder, last, "size"))
        except (OSError, ValueError):
            return None
    return sum(found.values()) or None


def _read(*parts: str) -> str:
    with open(os.path.join(*parts), encoding="ascii") as file:
        return file.read().strip()


def _bytes(text: str) -> int:
    """Read ``32768K``."""
    return int(text.rstrip("K")) * (1024 if text.endswith("K") else 1)
