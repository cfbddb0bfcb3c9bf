"""Divide traced steps among the operations that ran in them.

Every moment of a step belongs to the operations that run in it, in equal parts; on one thread, to
the innermost. What may run in threads that no trace shows has no more than there are threads for.
What ranks exchange has the moments in which nothing else runs. A moment in which none runs is a gap
of the host, which is known by what comes next. So the shares of a step add up to one, and what
carries no mark keeps a name of its own.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from harness.worker.attribution.marks import EXCHANGE, GAPS, UNMARKED, Place
from harness.worker.attribution.traced_steps import Operation as RanInStep
from harness.worker.attribution.traced_steps import Step, chosen

GAP = Place("", GAPS)
AFTER_THE_LAST = "after the last operation"
LISTED = 12
"""Kinds of operation that a part names; of the others it gives the number."""


LONGEST = 160
"""Of an operation's name, and of its shapes."""


class Operation(NamedTuple):
    """One kind of operation: what the framework calls it, its type, and its shapes in words."""

    name: str
    type: str
    shapes: str


class Ran(NamedTuple):
    """One operation as it ran, in nanoseconds."""

    start: int
    end: int
    lane: Any
    """Its thread; or something of its own where it may end on another than it began on."""
    place: Place
    operation: Operation
    holds: bool = True
    """Whether it held its thread; what went on in others, or waited for one, is told apart."""


class Part(NamedTuple):
    """What one layer takes in one pass."""

    place: Place
    shares: List[float]
    """Of each traced step."""
    operations: List[Dict[str, Any]]
    """name, type, shapes, times a step, share of the part; those that took longest first."""
    more: int
    """Further kinds of operations."""


class Attribution(NamedTuple):
    """Which layer and pass took which share of the traced steps."""

    traced_by: str
    step_s: List[float]
    parts: List[Part]
    untraced_s: List[float]
    """Of steps that the same process made between, or before and after, the traced ones."""
    kept: List[Step]
    """Some of the traced steps, operation by operation."""


Span = Tuple[int, int]


def attribution(
    traced_by: str,
    steps: Sequence[Span],
    ran: Iterable[Ran],
    untraced_s: Sequence[float],
    threads: int = 1,
) -> Attribution:
    """Divide steps, in order, among what ran; beside them stand steps that nothing traced.

    So many threads can run at once what holds none.
    """
    waiting = sorted(ran, key=lambda one: (one.start, -one.end))  # what is outer comes first
    shares: Dict[Place, List[float]] = {}
    taken: Dict[Place, Dict[Operation, int]] = defaultdict(lambda: defaultdict(int))
    counts: Dict[Place, Dict[Operation, int]] = defaultdict(lambda: defaultdict(int))
    whole: List[Step] = []
    for number, (start, end) in enumerate(steps):
        inside = [one for one in waiting if one.start < end and one.end > start]
        spent: Dict[Place, float] = defaultdict(float)
        for one in inside:
            if one.start >= start and one.holds:
                counts[one.place][one.operation] += 1
        whole.append(Step(number, start, end, [_as_it_ran(one, start, end) for one in inside]))
        spent[GAP] += 0
        reached = start
        for begun, ended, running in _moments(inside, start, end):
            _add_gap(reached, begun, "before " + _words(running[0].place), spent, taken, counts)
            for one, part in _parts(_counted(running, threads), threads):
                spent[one.place] += (ended - begun) * part
                taken[one.place][one.operation] += int((ended - begun) * part)
            reached = ended
        _add_gap(reached, end, AFTER_THE_LAST, spent, taken, counts)
        for place, nanoseconds in spent.items():
            row = shares.setdefault(place, [0.0] * len(steps))
            row[number] = nanoseconds / max(1, end - start)
    parts = [
        Part(place, row, *_operations(taken[place], counts[place], len(steps)))
        for place, row in sorted(shares.items(), key=lambda item: -sum(item[1]))
    ]
    step_s = [(end - start) / 1e9 for start, end in steps]
    return Attribution(traced_by, step_s, parts, list(untraced_s), chosen(whole))


def _counted(running: Sequence[Ran], threads: int) -> Sequence[Ran]:
    """Leave out what ranks exchange while anything else runs, or may: not what waits for them."""
    exchanging = [one for one in running if one.place.phase == EXCHANGE]
    is_free = threads > len(exchanging)
    computing = [one for one in running if one.place.phase != EXCHANGE and (one.holds or is_free)]
    return computing or exchanging or running


def _parts(running: Sequence[Ran], threads: int) -> Iterator[Tuple[Ran, float]]:
    """Divide a moment: equally among what holds a thread, and what others may run meanwhile."""
    held = sum(one.holds for one in running)
    loose = len(running) - held
    each = 1.0 if not held else min(1.0, max(0, threads - held) / max(1, loose))
    whole = held + each * loose
    for one in running:
        yield one, (1.0 if one.holds else each) / whole


def _words(place: Place) -> str:
    if place == UNMARKED:
        return "what carries no mark"
    return "{} {}".format(place.site, place.phase).strip()


def _add_gap(
    start: int,
    end: int,
    where: str,
    spent: Dict[Place, float],
    taken: Dict[Place, Dict[Operation, int]],
    counts: Dict[Place, Dict[Operation, int]],
) -> None:
    """Add a stretch in which nothing ran, by what came next."""
    if start < end:
        found = Operation(where, "", "")
        spent[GAP] += end - start
        taken[GAP][found] += end - start
        counts[GAP][found] += 1


def _as_it_ran(one: Ran, start: int, end: int) -> RanInStep:
    return RanInStep((*one.place, *one.operation), max(start, one.start), min(end, one.end))


def _operations(
    taken: Dict[Operation, int], counts: Dict[Operation, int], steps: int
) -> Tuple[List[Dict[str, Any]], int]:
    ordered = sorted(taken, key=lambda one: -taken[one])
    whole = max(1, sum(taken.values()))
    listed: List[Dict[str, Any]] = [
        {
            "name": one.name[:LONGEST],
            "type": one.type,
            "shapes": one.shapes[:LONGEST],
            "times": counts[one] / steps,
            "share": taken[one] / whole,
        }
        for one in ordered[:LISTED]
    ]
    return listed, max(0, len(ordered) - LISTED)


def _moments(inside: Sequence[Ran], start: int, end: int) -> Iterator[Tuple[int, int, List[Ran]]]:
    """Give the stretches in which the same operations run, where any does."""
    turns: List[Tuple[int, int, int]] = []
    for at, one in enumerate(inside):
        begun, ended = max(start, one.start), min(end, one.end)
        if begun < ended:
            turns += [(begun, 1, at), (ended, 0, at)]
    turns.sort()
    lanes: Dict[Any, List[int]] = defaultdict(list)
    before = start
    for moment, begins, at in turns:
        if moment > before:
            running = [inside[stack[-1]] for stack in lanes.values()]
            if running:
                yield before, moment, running
            before = moment
        lane = inside[at].lane
        if begins:
            lanes[lane].append(at)
        else:
            lanes[lane].remove(at)
            if not lanes[lane]:
                del lanes[lane]
