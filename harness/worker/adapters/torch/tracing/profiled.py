"""Trace steps with torch's profiler.

While a GPU is traced each launch takes longer, of steps between traced ones too: there, those that
nothing traces are made before and after.
"""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from harness.worker.adapters.torch.tracing.events import Step, read
from harness.worker.attribution.marks import STEP
from harness.worker.attribution.steps import timed, untraced, wait_for_input


def traced(
    activity: Any, steps: int, *, with_shapes: bool, is_gpu: bool
) -> Tuple[List[Step], List[float]]:
    """Trace some steps; give them, and the seconds of as many that nothing traced."""
    if not is_gpu:
        events, untraced_s = _by_turns(activity, steps, with_shapes)
        return read(events), untraced_s
    untraced_s = untraced(activity, (steps + 1) // 2)
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=with_shapes
    ) as profiler:
        for _ in range(steps):
            wait_for_input(activity)
            _step(activity)
    untraced_s += untraced(activity, (steps + 1) // 2)
    return read(profiler.profiler.kineto_results.events()), untraced_s


def _by_turns(activity: Any, steps: int, with_shapes: bool) -> Tuple[Sequence[Any], List[float]]:
    """Trace every other step."""
    untraced_s = []
    with profile(activities=[ProfilerActivity.CPU], record_shapes=with_shapes) as profiler:
        for _ in range(steps):
            # To pause the profiler by its own door prints a warning each time.
            torch.autograd._enable_record_function(False)
            untraced_s.append(timed(activity))
            wait_for_input(activity)
            torch.autograd._enable_record_function(True)
            _step(activity)
    return profiler.profiler.kineto_results.events(), untraced_s


def _step(activity: Any) -> None:
    with record_function(STEP):
        activity.step()
        activity.sync()
