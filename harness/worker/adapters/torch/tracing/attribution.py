"""Trace steps with torch's profiler, and find the layer and pass of each operator.

Hooks mark each layer's forward pass. An operator that a gradient reaches carries the number that
autograd gave it (``sequence_nr``), and so does its node of the backward pass, which belongs to the
same layer. What adds a gradient to a parameter has no number, and follows the node that made it.

Marks, types and shapes make short steps longer. So one step is described with them, and those that
are timed carry none: their operators are the same ones in the same order. Between two traced steps
one is made without a trace; what the trace costs is told by these pairs.

What torch.compile made has no hooks: the provenance of its kernels says where they belong.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from harness.worker.adapters.torch.activity import TrainingActivity
from harness.worker.adapters.torch.tracing import inductor
from harness.worker.attribution.account import Attribution, Operation, Ran, attribution
from harness.worker.attribution.marks import (
    BACKWARD,
    LAYOUT_COPY,
    LOSS,
    OF_LOSS,
    OF_UPDATE,
    STEP,
    UNMARKED,
    UPDATE,
    Marks,
    Place,
)
from harness.worker.attribution.steps import FEWEST, NOT_ON_GPU, timed, warmed
from harness.worker.contracts import Unsupported

NODE = "autograd::engine::evaluate_function: "
OPTIMISER = "Optimizer."
COMPILED = Place("", BACKWARD)
"""What compiled gradients do beside their kernels."""
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


class Described(NamedTuple):
    """What an event of a step is, wherever in time it lies."""

    name: str
    place: Optional[Place]
    """None where it is a range around operators."""
    operation: Operation


def attribute(activity: TrainingActivity, network: Any) -> Attribution:
    """Trace a few steps."""
    settings = activity.trainer.settings
    if settings.is_gpu:
        raise Unsupported(NOT_ON_GPU)
    lowered = activity.trainer.network
    graphs: List[inductor.Graph] = []
    with inductor.kept_graphs(lowered, graphs) if settings.is_compiled else nullcontext():
        steps = warmed(activity)
    marks = Marks(network)
    with _marked({} if settings.is_compiled else lowered.at, activity, marks):
        activity.step()
        (one,), _ = _traced(activity, 1, with_shapes=True)
    described = list(_described(one, marks, inductor.places(one, graphs)))
    traced, untraced_s = _traced(activity, steps, with_shapes=False)
    ran, spans = [], []
    for step in traced:
        if [event.name for event in step[1:]] == [each.name for each in described]:
            spans.append((step[0].start, step[0].end))
            ran += list(_ran(step[1:], described))
    if len(spans) < FEWEST:
        raise Unsupported("its steps run other operators from one to the next")
    return attribution("torch.profiler", spans, ran, untraced_s)


def _traced(
    activity: TrainingActivity, steps: int, *, with_shapes: bool
) -> Tuple[List[List[Event]], List[float]]:
    """Trace every other step; give the events of each, its own first, and the others' seconds."""
    untraced_s = []
    with profile(activities=[ProfilerActivity.CPU], record_shapes=with_shapes) as profiler:
        for _ in range(steps):
            # To pause the profiler by its own door prints a warning each time.
            torch.autograd._enable_record_function(False)
            untraced_s.append(timed(activity))
            torch.autograd._enable_record_function(True)
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
    return found, untraced_s


def _ran(step: Sequence[Event], described: Sequence[Described]) -> Iterator[Ran]:
    for event, what in zip(step, described):
        if what.place is not None:
            yield Ran(event.start, event.end, event.thread, what.place, what.operation)


@contextmanager
def _marked(layers: Mapping[str, Any], activity: TrainingActivity, marks: Marks) -> Iterator[None]:
    """Let layers, the loss and clipping open a range while they run."""
    trainer = activity.trainer
    hooks = [
        hook for path, module in layers.items() for hook in _mark_layer(module, marks.of(path))
    ]
    loss_of = trainer.loss_of

    def marked_loss(*given: Any) -> torch.Tensor:
        with record_function(LOSS):
            return loss_of(*given)

    clip_gradients = trainer._clip_gradients

    def marked_clip() -> None:
        with record_function(UPDATE):
            clip_gradients()

    patched: Any = trainer
    patched.loss_of, patched._clip_gradients = marked_loss, marked_clip
    try:
        yield
    finally:
        patched.loss_of, patched._clip_gradients = loss_of, clip_gradients
        for hook in hooks:
            hook.remove()


def _mark_layer(module: torch.nn.Module, mark: str) -> Tuple[Any, Any]:
    opened: List[Any] = []

    def before(*_: Any) -> None:
        opened.append(record_function(mark))
        opened[-1].__enter__()

    def after(*_: Any) -> None:
        opened.pop().__exit__(None, None, None)

    # A block that is computed again stops within a layer, as soon as all that it needs is known.
    left = module.register_forward_hook(after, always_call=True)
    return module.register_forward_pre_hook(before), left


def _event(event: Any) -> Event:
    start = event.start_ns()
    end = start + event.duration_ns()
    number = event.sequence_nr()
    return Event(
        event.name(), start, end, event.start_thread_id(), number, event.dtypes(), event.shapes()
    )


def _described(
    step: Sequence[Event], marks: Marks, kernels: Mapping[int, Place]
) -> Iterator[Described]:
    """Give a marked step's events without the marks, each with its place.

    That is the place of the innermost range around it on its thread; that of compiled kernels is
    known by their number in the step.
    """
    around: Dict[int, List[Tuple[int, Place]]] = {}
    forward: Dict[int, Place] = {}
    latest = UNMARKED
    for number, event in enumerate(step):
        ranges = around.setdefault(event.thread, [])
        while ranges and ranges[-1][0] <= event.start:
            ranges.pop()
        place = ranges[-1][1] if ranges else UNMARKED
        if number in kernels:
            ranges.append((event.end, kernels[number]))
            yield Described(event.name, kernels[number], _operation(event))
            continue
        opened = _opened(event, marks, forward, latest)
        if opened is not None:
            ranges.append((event.end, opened))
            if event.name.startswith(NODE):
                latest = opened
            is_optimiser = event.name.startswith(OPTIMISER)  # Python's part of an update is its own
            if is_optimiser or event.name.startswith(NODE):
                yield Described(event.name, opened if is_optimiser else None, _operation(event))
            continue
        if event.name == STEP:
            continue
        if event.number >= 0 and place.phase != BACKWARD:
            forward[event.number] = place  # the last to see a number is who takes it
        found = _of(event, place) if _is_operator(event) else None
        yield Described(event.name, found, _operation(event))


def _opened(
    event: Event, marks: Marks, forward: Dict[int, Place], latest: Place
) -> Optional[Place]:
    """Give the place of what happens within an event, if it is a range and no operator."""
    if event.name.startswith(NODE):
        if event.number < 0:
            return latest
        if event.name.endswith(inductor.BACKWARD_CALL):
            return COMPILED
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
    is_copy = event.name in COPIES and len(set(known[:2])) < 2
    if is_copy and (place.site or place == COMPILED):
        return place._replace(phase=LAYOUT_COPY)
    return UNMARKED if place == COMPILED else place


def _operation(event: Event) -> Operation:
    given = next((one for one in event.types if one), "")
    shapes = " ".join("x".join(map(str, one)) for one in event.shapes if one)
    return Operation(event.name, given, shapes)
