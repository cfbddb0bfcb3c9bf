"""Trace steps with torch's profiler, and find the layer and pass of each operator.

Hooks mark each layer's forward pass. An operator that a gradient reaches carries the number that
autograd gave it (``sequence_nr``), and so does its node of the backward pass, which belongs to the
same layer. What adds a gradient to a parameter has no number, and follows the node that made it.

To keep types and shapes makes short steps a fifth longer. So one step is traced with them, and
those that are timed without; their operators are the same ones in the same order.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from harness.worker.adapters.torch.activity import TrainingActivity
from harness.worker.attribution.account import Attribution, Operation, Ran, attribution
from harness.worker.attribution.marks import (
    BACKWARD,
    LAYOUT_COPY,
    LOSS,
    OF_LOSS,
    OF_UPDATE,
    STEP,
    UNMARKED,
    Marks,
    Place,
)
from harness.worker.attribution.steps import NOT_ON_GPU, warmed
from harness.worker.contracts import Unsupported

NODE = "autograd::engine::evaluate_function: "
OPTIMISER = "Optimizer."
COPIES = ("aten::copy_", "aten::clone", "aten::contiguous")


class Event(NamedTuple):
    """What is needed of one of the profiler's events."""

    name: str
    start: int
    end: int
    thread: int
    number: int
    """Of autograd; -1 for none."""
    types: List[str]
    shapes: List[Any]


def attribute(activity: TrainingActivity, network: Any) -> Attribution:
    """Trace a few steps."""
    settings = activity.trainer.settings
    if settings.is_gpu:
        raise Unsupported(NOT_ON_GPU)
    if settings.is_compiled:
        raise Unsupported("torch.compile's kernels are not attributed yet: only eager steps are")
    steps = warmed(activity)
    marks = Marks(network)
    _mark_layers(activity, marks)
    activity.step()
    (described,) = _traced(activity, 1, with_shapes=True)
    timed = [_described(one, described) for one in _traced(activity, steps, with_shapes=False)]
    spans = [(one[0].start, one[0].end) for one in timed]
    return attribution("torch.profiler", spans, _placed(chain.from_iterable(timed), marks))


def _traced(activity: TrainingActivity, steps: int, *, with_shapes: bool) -> List[List[Event]]:
    """Trace some steps; give the events of each in their order, the step's own first."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=with_shapes) as profiler:
        for _ in range(steps):
            with record_function(STEP):
                activity.step()
                activity.sync()
    events = [_event(one) for one in profiler.profiler.kineto_results.events()]
    events.sort(key=lambda one: (one.start, -one.end))
    found: List[List[Event]] = []
    for event in events:
        if event.name == STEP:
            found.append([])
        if found and event.start < (found[-1][0].end if found[-1] else event.end):
            found[-1].append(event)
    return found


def _described(step: List[Event], described: List[Event]) -> List[Event]:
    """Give a step's operators the types and shapes of another's, where both ran the same ones."""
    if [one.name for one in step] != [one.name for one in described]:
        return step
    return [
        one._replace(types=other.types, shapes=other.shapes) for one, other in zip(step, described)
    ]


def _mark_layers(activity: TrainingActivity, marks: Marks) -> None:
    """Let every layer and the loss open a range while they run."""
    trainer = activity.trainer
    for path, module in trainer.network.at.items():
        _mark_layer(module, marks.of(path))
    loss_of = trainer.loss_of

    def marked_loss(*given: Any) -> torch.Tensor:
        with record_function(LOSS):
            return loss_of(*given)

    trainer.loss_of = marked_loss


def _mark_layer(module: torch.nn.Module, mark: str) -> None:
    opened: List[Any] = []

    def before(*_: Any) -> None:
        opened.append(record_function(mark))
        opened[-1].__enter__()

    def after(*_: Any) -> None:
        opened.pop().__exit__(None, None, None)

    module.register_forward_pre_hook(before)
    module.register_forward_hook(after)


def _event(event: Any) -> Event:
    start = event.start_ns()
    end = start + event.duration_ns()
    number = event.sequence_nr()
    return Event(
        event.name(), start, end, event.start_thread_id(), number, event.dtypes(), event.shapes()
    )


def _placed(events: Iterable[Event], marks: Marks) -> Iterator[Ran]:
    """Give each operator with its place: that of the innermost range around it on its thread."""
    around: Dict[int, List[Tuple[int, Place]]] = {}
    forward: Dict[int, Place] = {}
    latest = UNMARKED
    for event in events:
        ranges = around.setdefault(event.thread, [])
        while ranges and ranges[-1][0] <= event.start:
            ranges.pop()
        place = ranges[-1][1] if ranges else UNMARKED
        opened = _opened(event, marks, forward, latest)
        if opened is not None:
            ranges.append((event.end, opened))
            if event.name.startswith(NODE):
                latest = opened
            if event.name.startswith(OPTIMISER):  # Python's part of an update belongs to it
                yield Ran(event.start, event.end, event.thread, opened, _operation(event))
            continue
        if event.name == STEP:
            continue
        if event.number >= 0 and place.phase != BACKWARD:
            forward[event.number] = place  # the last to see a number is who takes it
        if _is_operator(event):
            yield Ran(event.start, event.end, event.thread, _of(event, place), _operation(event))


def _opened(
    event: Event, marks: Marks, forward: Dict[int, Place], latest: Place
) -> Optional[Place]:
    """Give the place of what happens within an event, if it is a range and no operator."""
    if event.name.startswith(NODE):
        if event.number < 0:
            return latest
        place = forward.get(event.number, UNMARKED)
        return place._replace(phase=BACKWARD) if place.site else place
    if event.name.startswith(OPTIMISER):
        return Place("", OF_UPDATE)
    if event.name == LOSS:
        return Place("", OF_LOSS)
    place = marks.place(event.name)
    return None if place == UNMARKED else place


def _is_operator(event: Event) -> bool:
    return "::" in event.name and not event.name.startswith(("autograd::", "torch::autograd::"))


def _of(event: Event, place: Place) -> Place:
    """Tell a copy of a layer's tensor into another layout from what the layer computes."""
    known = [one for one in event.types if one]
    if event.name in COPIES and place.site and len(set(known[:2])) < 2:
        return place._replace(phase=LAYOUT_COPY)
    return place


def _operation(event: Event) -> Operation:
    given = next((one for one in event.types if one), "")
    shapes = " ".join("x".join(map(str, one)) for one in event.shapes if one)
    return Operation(event.name, given, shapes)
