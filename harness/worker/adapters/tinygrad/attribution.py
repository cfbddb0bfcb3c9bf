"""Time the kernels of steps, one by one, and find the layer and pass of each.

On a CPU a kernel is called and has ended once the call returns, so that a clock around the call is
all that it takes; tinygrad's own profiler says no more there. Marks: ``provenance.py``.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Sequence

from tinygrad.codegen import to_program
from tinygrad.engine import realize
from tinygrad.helpers import ansistrip
from tinygrad.uop import Ops

from harness.worker.adapters.tinygrad.provenance import Kernel, kept_kernels, marking
from harness.worker.attribution.account import Attribution, Operation, Ran, attribution
from harness.worker.attribution.marks import Marks
from harness.worker.attribution.steps import Span, timed, wait_for_input, warmed, watched
from harness.worker.contracts import Unsupported


def attribute(activity: Any, network: Any) -> Attribution:
    """Capture the step with marks, and time its kernels in every other of a few steps."""
    marks = Marks(network)
    activity.mark(marking(marks))
    with kept_kernels(activity.captured, marks) as kernels:
        for _ in range(2):
            activity.step()
    described = _described(activity, kernels)
    steps = warmed(activity)
    spans: List[Span] = []
    ran: List[Ran] = []
    untraced_s: List[float] = []

    def step() -> None:
        activity.step()
        activity.sync()

    traced = watched(step, spans)
    for _ in range(steps):
        untraced_s.append(timed(activity))
        wait_for_input(activity)
        with _timed_kernels() as calls:
            traced()
        if len(calls) != len(described):
            raise Unsupported("tinygrad replays other kernels than it captured")
        ran += [one._replace(start=at[0], end=at[1]) for one, at in zip(described, calls)]
    return attribution("a clock around each kernel", spans, ran, untraced_s)


@contextmanager
def _timed_kernels() -> Iterator[List[Span]]:
    """Note when each kernel that is called begins and ends."""
    calls: List[Span] = []
    loaded = dict(realize.runtime_cache)
    realize.runtime_cache.update({key: watched(one, calls) for key, one in loaded.items()})
    try:
        yield calls
    finally:
        realize.runtime_cache.update(loaded)


def _described(activity: Any, kernels: Sequence[Kernel]) -> List[Ran]:
    """Say of each kernel that a step replays what it is; when it ran is not known yet."""
    replayed = activity.captured.captured.linear.src
    compiled: Dict[Any, Any] = {
        one.program: to_program(one.program, activity.renderer())
        for one in kernels
        if one.program.op is Ops.SINK
    }
    if [call.src[0] for call in replayed] != [compiled.get(one.program) for one in kernels]:
        raise Unsupported("tinygrad replays other kernels than it scheduled, or none one by one")
    return [Ran(0, 0, 0, kernel.place, _operation(call)) for kernel, call in zip(kernels, replayed)]


def _operation(call: Any) -> Operation:
    """Name a kernel as tinygrad does: by its loops, reductions or not."""
    result = call.src[1]
    return Operation(ansistrip(call.src[0].arg.name), str(result.dtype).rpartition(".")[2], "")
