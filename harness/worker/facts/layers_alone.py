"""Time the layers of a cell's network that multiply, each alone: what they need here at least.

Those of equal shape once, those that multiply most first, for some seconds in all; what there is no
time for is left to a later run, which leaves out what is known. A layer is lowered as the gate
examines it, and stepped by the loop that times everything else.
"""

from __future__ import annotations

import time
from typing import Any, Dict

from harness.worker import feed, loop
from harness.worker.contracts import door
from harness.worker.events import Events
from harness.worker.gate import layer_activity
from harness.worker.job import Job, Span
from harness.worker.network.alone import PASSES_DONE, layer_alone, multiplying, name_of
from harness.worker.network.workload import Training
from harness.worker.place import Place
from harness.worker.windows.windows import Clock

SECONDS = 6.0
"""For all of them; what a compiler takes counts, and a layer that was begun is finished."""
WARMUP, UNTIL = Span(steps=2), Span(seconds=0.1)


def measure(
    adapter: Any,
    workload: Training,
    job: Job,
    place: Place,
    events: Events,
    clock: Clock = time.monotonic_ns,
) -> None:
    """Step each layer forward, then forward and backward; a fault of one is its own."""
    examine = door(adapter, "examine")
    if examine is None:
        return
    ends = clock() + SECONDS * 1e9
    for one in multiplying(workload.network, job.scale.batch_per_step, job.factors):
        if one.words in job.known:
            continue
        if clock() >= ends:
            return
        alone = layer_alone(workload, name_of(workload.name, one.site.site.path, one.passes))
        about: Dict[str, Any] = {"kernel": one.words, "unit": PASSES_DONE}
        fed = feed.describe(alone, job.scale, seed=job.seed, place=place)
        try:
            activity = layer_activity.opened(examine, alone, fed)
            events.say("ceiling", work=1.0, why="", **about)
            loop.run(activity, events, warmup=WARMUP, until=UNTIL, clock=clock)
        except Exception as fault:  # noqa: BLE001 - kernels were measured already, others follow
            events.say("ceiling", work=None, why=str(fault) or type(fault).__name__, **about)
