"""Divide the steps of an XSpace trace among layers: of JAX, of TensorFlow, and of XLA in both.

An instruction that XLA's CPU backend runs may go on in other threads than the one that it began on:
an event ``end: NAME`` says when the last part of it ended. Until then those threads ran it, or ran
something else first, which is not told. On a GPU what ran there counts, and the host's
events say only when that was launched.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from typing import Any, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Sequence

from harness.worker.attribution import hlo_names, xspace
from harness.worker.attribution.account import Attribution, Operation, Ran, Span, attribution
from harness.worker.attribution.hlo_names import CONTAINERS, Instruction
from harness.worker.attribution.idle import Work, idle
from harness.worker.attribution.marks import (
    EXCHANGE,
    LAYOUT_COPY,
    OF_UPDATE,
    PLAIN_COPY,
    STEP,
    UNMARKED,
    Marks,
    Place,
    plain,
)
from harness.worker.attribution.steps import NO_DEVICE_TRACK
from harness.worker.contracts import Unsupported

OF_XLA = "hlo_op"
ENDED = "end: "
COPY = "copy"
BLOCK, MOST_BLOCKS = 2**20, 8
"""XLA copies so many bytes at a time, in so many blocks at most: the first where the copy begins,
the others in the pool (xla/backends/cpu/runtime/copy_thunk.cc). Each takes about as long; before
that they wait for a thread, maybe until the step's end."""
EXCHANGING = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-")
"""How XLA's instructions begin by which ranks exchange."""
MOVING = ("Transpose", "_MklTranspose", "_MklToTf", "_MklInputConversion")
"""Kinds of TensorFlow's operations that bring a tensor into another layout."""

Shapes = Callable[[str], Any]
"""Gives the type and shape of an operation of TensorFlow's graph by its name."""


def divided(
    trace: xspace.Trace,
    network: Any,
    traced_by: str,
    untraced_s: Sequence[float],
    shapes: Optional[Shapes] = None,
    *,
    threads: int = 1,
    is_gpu: bool = False,
) -> Attribution:
    """Divide the steps of a trace."""
    marks = Marks(network)
    steps = sorted((one.start, one.end) for one in trace.events if one.name == STEP)
    if not steps:
        raise ValueError("the trace holds no step")
    modules: Dict[str, Dict[str, Instruction]] = {}
    for one in trace.modules:
        name, found = hlo_names.instructions(one)
        if any(marks.place(each.op_name) != UNMARKED for each in found.values()):
            modules[name] = found  # others are not of the step
    if is_gpu:
        return attribution(traced_by, steps, _on_device(trace, steps, modules, marks), untraced_s)
    ran = list(_of_xla(trace.events, modules, marks))
    if shapes is not None:
        ran += _of_graph(trace.events, marks, shapes)
    return attribution(traced_by, steps, ran, untraced_s, threads)


def _of_xla(
    events: List[xspace.Event], modules: Dict[str, Dict[str, Instruction]], marks: Marks
) -> Iterator[Ran]:
    ends: Dict[str, Deque[int]] = defaultdict(deque)
    starts: Dict[str, Deque[int]] = defaultdict(deque)
    in_order = sorted(events, key=lambda one: one.start)
    for event in in_order:
        if event.name.startswith(ENDED):
            ends[event.name[len(ENDED) :]].append(event.start)
        elif OF_XLA in event.stats:
            starts[event.name].append(event.start)
    for event in in_order:
        name = event.stats.get(OF_XLA)
        if name is None:
            continue
        starts[event.name].popleft()
        ended = _ended(event, ends[event.name], starts[event.name])
        instruction = modules.get(event.stats.get("hlo_module", ""), {}).get(name)
        if instruction is None:
            place, operation = UNMARKED, Operation(name, "", "")
        elif instruction.opcode in CONTAINERS:
            continue
        else:
            place = _place(instruction, marks)
            kind = "" if _is_gradient(instruction, marks) else plain(instruction.op_name)
            kind = "{} {}".format(instruction.opcode, kind).strip()
            operation = Operation(kind, instruction.type, instruction.shape)
        yield Ran(event.start, event.end, event.line, place, operation)
        begun = event.end
        if instruction is not None and instruction.opcode == COPY:
            begun = max(begun, ended - (_blocks(instruction) - 1) * (event.end - event.start))
        if ended > begun:
            yield Ran(begun, ended, (event.line, event.start), place, operation, holds=False)


def _ended(event: xspace.Event, ends: Deque[int], starts: Deque[int]) -> int:
    """Say when the last part of an instruction ended: before it begins again, if that was noted."""
    while ends and ends[0] < event.start:
        ends.popleft()
    if ends and not (starts and starts[0] < ends[0]):
        return max(event.end, ends.popleft())
    return event.end


def _blocks(instruction: Instruction) -> int:
    """Say in how many blocks XLA makes a copy."""
    bits = re.sub(r"[^0-9]", "", instruction.type) or "8"
    size = int(bits) // 8
    for one in instruction.shape.split("x"):
        size *= int(one or 1)
    return max(1, min(MOST_BLOCKS, -(-size // BLOCK)))


def _place(instruction: Instruction, marks: Marks) -> Place:
    if instruction.opcode.startswith(EXCHANGING):
        return Place("", EXCHANGE)
    if instruction.is_plain_copy:
        return Place("", PLAIN_COPY)
    place = marks.place(instruction.op_name)
    if _is_gradient(instruction, marks):
        place = marks.of_gradient(instruction.argument, instruction.op_name)
    if instruction.moves_only and place.phase != OF_UPDATE:
        return Place(place.site, LAYOUT_COPY)
    return place


def _is_gradient(instruction: Instruction, marks: Marks) -> bool:
    """Tell a gradient that XLA left without a name from the update that it is an argument of."""
    return instruction.is_nameless and marks.place(instruction.op_name).phase == OF_UPDATE


def _on_device(
    trace: xspace.Trace,
    steps: Sequence[Span],
    modules: Mapping[str, Mapping[str, Instruction]],
    marks: Marks,
) -> List[Ran]:
    """Give what ran on the GPU, at the place of the instruction that asked for it, and its pauses.

    Each has a lane of its own, as what overlaps shares its time, on one stream as on several.
    """
    if not trace.device:
        raise Unsupported(NO_DEVICE_TRACK)
    ran: List[Ran] = []
    for lane, event in enumerate(trace.device):
        program = modules.get(event.stats.get("hlo_module", ""), {})
        instruction = program.get(event.stats.get(OF_XLA, "").rpartition("/")[2])
        place, operation = UNMARKED, Operation(event.name, "", "")
        if instruction is not None:
            place = _place(instruction, marks)
            operation = Operation(event.name, instruction.type, instruction.shape)
        ran.append(Ran(event.start, event.end, lane, place, operation))
    calls = {one.stats[xspace.CALL]: one.end for one in trace.events if xspace.CALL in one.stats}
    works = [
        Work(one.start, one.end, calls.get(one.stats.get(xspace.CALL, ""))) for one in trace.device
    ]
    return ran + list(idle(steps, works))


def _of_graph(events: List[xspace.Event], marks: Marks, shapes: Shapes) -> Iterator[Ran]:
    """Give what TensorFlow's executor ran: events called NAME:KIND, of operations in the graph."""
    known: Dict[str, Any] = {}
    for event in events:
        name, colon, kind = event.name.rpartition(":")
        if not colon or OF_XLA in event.stats or name.startswith(("end", "Eager")) or "::" in kind:
            continue
        if " " in event.name or name.endswith(":") or not kind.lstrip("_").isalnum():
            continue
        if name == kind:
            continue  # a compiled function as a whole
        place = marks.place(name)
        if kind in MOVING:
            place = Place(place.site, LAYOUT_COPY)
        if name not in known:
            known[name] = shapes(name)
        type_, shape = known[name]
        yield Ran(event.start, event.end, event.line, place, Operation(kind, type_, shape))
