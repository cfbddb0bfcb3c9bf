"""Count what the step that was timed multiplies, and what training takes.

The activity counts its own step, after the measured phase, and says how: by the operators that
torch dispatches, the text of XLA's compiled step, TensorFlow's traced graph, tinygrad's kernels.
Only convolutions and products count, each as it is stated, whatever algorithm computes it. Where
blocks are computed again on the way back, that is part of what is asked.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from math import gcd
from typing import Any, Dict, Hashable, Mapping, NamedTuple
from typing import Counter as Counts

from harness.worker.contracts import door
from harness.worker.job import micro_batches, recomputes
from harness.worker.network.blocks import macs_computed_again
from harness.worker.network.shapes import macs_of_step
from harness.worker.network.workload import Training
from harness.worker.scale import Scale

STEPS = 2
"""A step that leaves out every second one shows in two."""


class Count(NamedTuple):
    """How many multiplications a step makes, and what told it."""

    macs: int
    by: str
    in_order: bool = False
    """Whether blocks are computed again layer by layer, beside what no gradient looks at."""
    parts: int = 0
    """A multiple of the micro-batches that a step is computed in; 0 where nobody looked."""


class Tally:
    """What was found to multiply: how much, and how often each product of one form comes.

    A step of four micro-batches makes each of its products four times, or eight where two layers
    are alike. One that computes its batch at once makes some of them once.
    """

    def __init__(self) -> None:
        self.macs = 0
        self._times: Counts[Hashable] = Counter()

    def add(self, form: Hashable, macs: int, times: int = 1) -> None:
        """Note a product; what multiplies nothing is none."""
        if macs:
            self.macs += macs * times
            self._times[form] += times

    def of_step(self, calls: float, by: str, *, in_order: bool = False) -> Count:
        """Give what a step makes that runs so many times what was found."""
        parts = reduce(gcd, self._times.values(), 0)
        return Count(round(self.macs * calls), by, in_order, round(parts * calls))


class Uncounted(Exception):
    """Say why the multiplications of a step cannot be counted."""


def counted(
    activity: Any, workload: Any, scale: Scale, factors: Mapping[str, Any]
) -> Dict[str, Any]:
    """Give the fact of a rank; nothing where nothing is trained.

    Of a single sample compilers make something else than products, of a vector and a number.
    """
    if not isinstance(workload, Training):
        return {}
    try:
        found = _count(activity, scale, micro_batches(factors))
    except Uncounted as why:
        told = {**_asked(workload, scale, factors, in_order=False), "uncounted": str(why)}
        return {"multiplications": told}
    asked = _asked(workload, scale, factors, in_order=found.in_order)
    told = {**asked, "counted": found.macs, "by": found.by}
    if micro_batches(factors) > 1 and found.parts:
        told["parts"] = found.parts
    return {"multiplications": told}


def _asked(
    workload: Training, scale: Scale, factors: Mapping[str, Any], *, in_order: bool
) -> Dict[str, Any]:
    """Say what a step has to multiply, and how much of it for the second time."""
    once = scale.batch_per_rank * macs_of_step(workload.network)
    if not recomputes(factors):
        return {"asked": once}
    again = scale.batch_per_rank * macs_computed_again(workload.network, in_order=in_order)
    return {"asked": once + again, "again": again}


def calls_per_step(activity: Any, compiled: str) -> float:
    """Step, and count how often a step calls what was compiled, by its attribute's name."""
    timed, calls = getattr(activity, compiled), []

    def noted(*given: Any) -> Any:
        calls.append(1)
        return timed(*given)

    setattr(activity, compiled, noted)
    try:
        for _ in range(STEPS):
            activity.step()
        activity.sync()
    finally:
        setattr(activity, compiled, timed)
    return len(calls) / STEPS


def _count(activity: Any, scale: Scale, accumulate: int) -> Count:
    count = door(activity, "multiplications")
    if count is None:
        raise Uncounted("its adapter counts none")
    if scale.devices > 1:
        raise Uncounted("it is one of several ranks or devices that train together")
    if scale.batch_per_rank == accumulate:
        raise Uncounted("a step of one sample is compiled to something else than products")
    found: Count = count()
    return found
