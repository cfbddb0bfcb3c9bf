"""Read what torch's profiler noted: what the host did in each step, and what ran on its device.

An operator has a number, by which its device's work is joined to it (``linked_correlation_id``, in
files ``External id``). A call that launches has another one, which it shares with what it launched
(``correlation_id``).
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from harness.worker.attribution.marks import STEP

_RUNTIME = re.compile(r"(cu|cuda|hip)[A-Z]\w*$")
_OVERHEAD = (
    *("Activity Buffer Request", "Command Buffer Full", "Driver Compiler", "Instrumentation"),
    *("Lazy Function Loading", "Resource", "Runtime Triggered Module Loading", "UNKNOWN"),
)
_OF_HOST, _LAUNCHES = ("cpu_op", "user_annotation"), ("cuda_runtime", "cuda_driver")
OF_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
_OF_MESSAGES = ("gloo:", "mpi:", "ucc:")
"""Messages that threads of their own carry: they begin now before one operator, now another."""
_RANGES = (STEP, "Optimizer.", "## ", "Torch-Compiled")


class Event(NamedTuple):
    """What is needed of one thing that the host did."""

    name: str
    start: int
    end: int
    thread: int
    sequence: int
    """Of autograd; -1 for none."""
    types: List[str]
    shapes: List[Any]
    number: int = 0
    """By which its device's work is joined to it."""


class Kernel(NamedTuple):
    """What ran on a device: a kernel, a copy, or a tensor filled."""

    name: str
    start: int
    end: int
    operator: int
    """The number of the innermost operator that launched it; 0 for none."""
    launched: Optional[int]
    """When the call returned that launched it."""


class Step(NamedTuple):
    """One traced step."""

    span: Tuple[int, int]
    host: List[Event]
    """In order of their beginnings, what is outer first; without the step itself."""
    device: List[Kernel]
    messages: List[Event]
    """What ranks exchanged meanwhile, each from when it was asked for until it was there."""


def read(events: Sequence[Any]) -> List[Step]:
    """Sort the profiler's events by step."""
    by_kind: Dict[str, List[Any]] = {}
    for event in events:
        by_kind.setdefault(_kind(event), []).append(event)
    host = sorted(
        (_event(one) for kind in _OF_HOST for one in by_kind.get(kind, [])),
        key=lambda one: (one.start, -one.end),
    )
    device = sorted(_kernels(by_kind), key=lambda one: one.start)
    found: List[Step] = []
    for event in host:
        if event.name == STEP:
            found.append(Step((event.start, event.end), [], [], []))
        elif found and event.start < found[-1].span[1]:
            is_message = event.name.startswith(_OF_MESSAGES)
            (found[-1].messages if is_message else found[-1].host).append(event)
    for step in found:
        start, end = step.span
        step.device.extend(one for one in device if one.start < end and one.end > start)
    return found


def _kind(event: Any) -> str:
    """Say what an event is, in the words of torch's trace files; an older torch leaves it open."""
    told = getattr(event, "activity_type", None)
    if told is not None:
        return str(told())
    name = event.name()
    if str(event.device_type()).endswith("CPU"):
        if _RUNTIME.match(name):
            return _LAUNCHES[0]
        return "overhead" if name in _OVERHEAD else _OF_HOST[0]
    # A range of the host appears among the kernels that were launched in it, too.
    return "gpu_user_annotation" if name.startswith(_RANGES) else OF_DEVICE[0]


def _event(event: Any) -> Event:
    start = event.start_ns()
    return Event(
        event.name(),
        start,
        start + event.duration_ns(),
        event.start_thread_id(),
        event.sequence_nr(),
        event.dtypes(),
        event.shapes(),
        event.correlation_id(),
    )


def _kernels(by_kind: Dict[str, List[Any]]) -> Iterator[Kernel]:
    returned = {
        one.correlation_id(): one.start_ns() + one.duration_ns()
        for kind in _LAUNCHES
        for one in by_kind.get(kind, [])
    }
    for kind in OF_DEVICE:
        for one in by_kind.get(kind, []):
            start, call = one.start_ns(), one.correlation_id()
            end = start + one.duration_ns()
            yield Kernel(one.name(), start, end, one.linked_correlation_id(), returned.get(call))
