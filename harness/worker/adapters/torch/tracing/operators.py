"""Find the layer and pass of each operator in a traced step, and divide steps by that.

Hooks mark each layer's forward pass. An operator that a gradient reaches carries the number that
autograd gave it (``sequence_nr``), and so does its node of the backward pass, which belongs to the
same layer. What adds a gradient to a parameter has no number, and follows the node that made it.

On a CPU an operator's own time counts, on a GPU the time of what it launched there: each kernel is
at the place of the innermost operator around its launch, but those of NCCL, which exchange.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from harness.worker.adapters.torch.tracing import inductor
from harness.worker.adapters.torch.tracing.events import Event, Step
from harness.worker.attribution.account import Attribution, Operation, Ran, attribution
from harness.worker.attribution.idle import Work, idle
from harness.worker.attribution.marks import (
    BACKWARD,
    EXCHANGE,
    LAYOUT_COPY,
    LOSS,
    OF_LOSS,
    OF_UPDATE,
    UNMARKED,
    WAIT,
    Marks,
    Place,
)
from harness.worker.attribution.steps import FEWEST, NO_DEVICE_TRACK
from harness.worker.contracts import Unsupported

NODE = "autograd::engine::evaluate_function: "
OPTIMISER = "Optimizer."
COMPILED = Place("", BACKWARD)
"""What compiled gradients do beside their kernels."""
EXCHANGED = Place("", EXCHANGE)
NCCL = "nccl"
EXCHANGES = ("c10d::", "torch::distributed::")
"""How the calls begin that ask for messages, pack them, and average what came."""
COPIES = ("aten::copy_", "aten::clone", "aten::contiguous")


class Described(NamedTuple):
    """What an event of a step is, wherever in time it lies."""

    name: str
    place: Optional[Place]
    """None where it is a range around operators."""
    operation: Operation


def divided(
    described_by: Step,
    steps: Sequence[Step],
    marks: Marks,
    graphs: Sequence[inductor.Graph],
    untraced_s: Sequence[float],
    *,
    is_gpu: bool,
) -> Attribution:
    """Divide traced steps by what one that carries marks says of their operators."""
    host = described_by.host
    described = list(_described(host, marks, inductor.places(host, graphs)))
    names = [each.name for each in described]
    alike = [step for step in steps if [event.name for event in step.host] == names]
    if len(alike) < FEWEST:
        raise Unsupported("its steps run other operators from one to the next")
    spans = [step.span for step in alike]
    of_step = _on_device if is_gpu else _ran
    ran = [each for step in alike for each in of_step(step, described)]
    if is_gpu:
        if not ran:
            raise Unsupported(NO_DEVICE_TRACK)
        works = [Work(one.start, one.end, one.launched) for step in alike for one in step.device]
        ran += idle(spans, works)
    return attribution("torch.profiler", spans, ran, untraced_s)


def _ran(step: Step, described: Sequence[Described]) -> Iterator[Ran]:
    for event, what in zip(step.host, described):
        if what.place is not None:
            yield Ran(event.start, event.end, event.thread, what.place, what.operation)
    for lane, message in enumerate(step.messages, start=1):
        yield Ran(message.start, message.end, -lane, EXCHANGED, _operation(message))


def _on_device(step: Step, described: Sequence[Described]) -> Iterator[Ran]:
    """Give what ran on the device, each at the place of the operator that launched it.

    Each has a lane of its own, as what overlaps shares its time, on one stream as on several.
    """
    by_number = {event.number: what for event, what in zip(step.host, described)}
    for lane, kernel in enumerate(step.device):
        what = by_number.get(kernel.operator)
        place = UNMARKED if what is None or what.place is None else what.place
        if kernel.name.startswith(NCCL):
            place = EXCHANGED
        given = ("", "") if what is None else (what.operation.type, what.operation.shapes)
        yield Ran(kernel.start, kernel.end, lane, place, Operation(kernel.name, *given))


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
        if event.name == WAIT or event.name.startswith(EXCHANGES):
            ranges.append((event.end, EXCHANGED))
            yield Described(event.name, EXCHANGED, _operation(event))
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
        if event.sequence >= 0 and place.phase != BACKWARD:
            forward[event.sequence] = place  # the last to see a number is who takes it
        found = _of(event, place) if _is_operator(event) else None
        yield Described(event.name, found, _operation(event))


def _opened(
    event: Event, marks: Marks, forward: Dict[int, Place], latest: Place
) -> Optional[Place]:
    """Give the place of what happens within an event, if it is a range and no operator."""
    if event.name.startswith(NODE):
        if event.sequence < 0:
            return latest
        if event.name.endswith(inductor.BACKWARD_CALL):
            return COMPILED
        place = forward.get(event.sequence, UNMARKED)
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
