"""Find the bottleneck of an input's ladder: storage, processors, computing or the loader.

The rung that loses most is judged by who was busy. Within a tenth two rungs are the same. A loader
that is as fast as bytes alone are, or as they are with no more threads than it has, waits for
storage, if the files are cold. Any other is bound by processors where three quarters of those that
it could use were busy. One that is slower is bound by nothing but itself, by its hand-overs and its
turns, where less than half were and nobody else disturbed it: that is called harness-bound, whether
the loader is ours or a framework's.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.analysis.files.goodput import ALIKE, ComputeOnly

BYTES, PARSED, LOADER, DECODED, MODEL = range(5)
STORAGE, CPU, HARNESS, COMPUTE, UNKNOWN = (
    "storage-bound",
    "CPU-bound",
    "harness-bound",
    "compute-bound",
    "",
)
_BUSY, _IDLE = 0.75, 0.5


@dataclass(frozen=True)
class LadderStep:
    """The figures of one rung that decide the bottleneck."""

    rate: float
    busy: float | None = None
    """Share of the processors that it could use which were busy; None if unknown."""
    disturbed: bool = False
    bytes_alike: float | None = None
    """What bytes alone reached by no more threads than this rung's loader has."""


def bottleneck(
    steps: dict[int, LadderStep], computing: ComputeOnly | None, *, is_cold: bool
) -> str:
    """Name the bottleneck of the top rung; empty where the rungs do not show it."""
    top = max(steps)
    lower = [rung for rung in sorted(steps) if rung < top]
    if top == MODEL:
        reached = steps[MODEL].rate
        if computing is not None and reached >= ALIKE * computing.rate:
            # a model that was slowed could have been faster; one that is slower alone, was slowed
            doubtful = computing.disturbed or ALIKE * reached > computing.rate
            return UNKNOWN if doubtful else COMPUTE
        if not lower:
            return UNKNOWN
        if reached < ALIKE * min(steps[rung].rate for rung in lower):
            # alone each of them is faster than both together: they fight for the same processors,
            # or take turns where they could go on side by side
            return UNKNOWN if computing is None else _by_processors(steps[MODEL])
        top = lower.pop()
    if BYTES not in steps or top == BYTES or ALIKE * steps[top].rate > steps[BYTES].rate:
        return UNKNOWN  # nothing is faster than what it stands on: something disturbed that
    step = steps[top]
    beneath = min(steps[BYTES].rate, step.bytes_alike or steps[BYTES].rate)
    if step.rate < ALIKE * beneath:
        return _by_processors(step)
    if is_cold:
        return STORAGE
    return CPU if step.busy is not None and step.busy >= _BUSY else UNKNOWN


def _by_processors(step: LadderStep) -> str:
    if step.busy is None:
        return UNKNOWN
    if step.busy >= _BUSY:
        return CPU
    return HARNESS if step.busy < _IDLE and not step.disturbed else UNKNOWN
