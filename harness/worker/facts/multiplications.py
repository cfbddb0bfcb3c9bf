"""Count what the step that was timed multiplies, and what training takes.

The activity counts its own step, after the measured phase, and says how: by the operators that
torch dispatches, the text of XLA's compiled step, TensorFlow's traced graph, tinygrad's kernels.
Only convolutions and products count, each as it is stated, whatever algorithm computes it.
"""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

from harness.worker.contracts import door
from harness.worker.network.shapes import macs_of_step
from harness.worker.network.workload import Training
from harness.worker.scale import Scale

STEPS = 2
"""A step that leaves out every second one shows in two."""


class Count(NamedTuple):
    """How many multiplications a step makes, and what told it."""

    macs: int
    by: str


class Uncounted(Exception):
    """Say why the multiplications of a step cannot be counted."""


def counted(activity: Any, workload: Any, scale: Scale, accumulate: int = 1) -> Dict[str, Any]:
    """Give the fact of a rank; nothing where nothing is trained.

    Of a single sample compilers make something else than products, of a vector and a number.
    """
    if not isinstance(workload, Training):
        return {}
    asked = scale.batch_per_rank * macs_of_step(workload.network)
    try:
        found = _count(activity, scale, accumulate)
    except Uncounted as why:
        return {"multiplications": {"asked": asked, "uncounted": str(why)}}
    return {"multiplications": {"asked": asked, "counted": found.macs, "by": found.by}}


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
