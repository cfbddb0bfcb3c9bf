"""Which steps are traced, and how many: as fit into about a second, within bounds.

They come after what comes before them in the timed loop, the wait for their input: a processor that
stood still for a while takes longer over the next step, traced or not.
"""

from __future__ import annotations

import time
from typing import Any, Callable, List, Tuple

from harness.worker.contracts import door

WARM_STEPS = 3
TRACED_S = 1.0
FEWEST, MOST = 5, 40
NOT_ON_GPU = "this framework's steps are not attributed on a GPU yet: only on a CPU"
NO_DEVICE_TRACK = (
    "its trace holds nothing that ran on the GPU: is NVIDIA's CUPTI here, and may this user trace?"
)

Span = Tuple[int, int]
"""Where something began and ended, in nanoseconds."""


def warmed(activity: Any) -> int:
    """Step until warm; give the number of steps to trace, which is the same for all ranks."""
    for _ in range(WARM_STEPS):
        timed(activity)
    began = time.perf_counter()
    timed(activity)
    steps = max(FEWEST, min(MOST, round(TRACED_S / max(time.perf_counter() - began, 1e-6))))
    agree = door(activity, "agree")
    return steps if agree is None else int(agree(steps))


def wait_for_input(activity: Any) -> None:
    """Wait for the next batch as the timed loop does, where there is any input."""
    epochs, fetch = door(activity, "epochs"), door(activity, "fetch")
    if epochs is not None and not epochs.left():
        epochs.turn()
    if fetch is not None:
        fetch()


def timed(activity: Any) -> float:
    """Give the seconds of one step that nothing traces, without the wait for its input."""
    wait_for_input(activity)
    began = time.perf_counter()
    activity.step()
    activity.sync()
    return max(time.perf_counter() - began, 1e-6)


def untraced(activity: Any, steps: int) -> List[float]:
    """Give the seconds of some steps that nothing traces, one after the other."""
    return [timed(activity) for _ in range(steps)]


def watched(call: Callable[..., Any], spans: List[Span]) -> Callable[..., Any]:
    """Note when each call begins and ends, where no profiler does."""

    def noted(*given: Any, **more: Any) -> Any:
        began = time.perf_counter_ns()
        result = call(*given, **more)
        spans.append((began, time.perf_counter_ns()))
        return result

    return noted
