"""Read the operations of some traced steps of a cell, as its untimed job kept them."""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import DamagedFile
from harness.store.layout import RunPaths
from harness.store.record_readers.attribution import NOT_MADE, Attribution, read_attribution
from harness.store.typed import damage, read
from harness.worker.attribution.traced_steps import MOST_OPERATIONS, VERSION

MOST_STEPS = 1_000
LONGEST_STEP_NS = 10**14
"""A day, and so many steps of it still fit in 63 bits."""
NOT_KEPT = "the job that traced its steps kept none of them"


@dataclass(frozen=True)
class TracedStep:
    """One traced step."""

    number: int
    """Among those that were traced; the first is 0."""
    length_ns: int
    operations: tuple[tuple[int, int, int], ...]
    """Kind, start and length of each, in nanoseconds from where the step began."""
    left_out: int
    """Operations that it had beyond those."""


@dataclass(frozen=True)
class TracedSteps:
    """Some of a cell's steps, as they ran while they were traced."""

    version: int
    traced_by: str
    kinds: tuple[tuple[str, str, str, str, str], ...]
    """A layer's path, "" for none; the phase; the operation's name, type and shapes."""
    steps: tuple[TracedStep, ...]


def read_traced_steps(paths: RunPaths, cell_key: str) -> TracedSteps | str:
    """Give the steps that were kept of a cell, or why there are none."""
    divided = read_attribution(paths, cell_key)
    if not isinstance(divided, Attribution):
        return divided
    trial = paths.attribution(cell_key)
    try:
        with damage(trial.traced):
            found = read(TracedSteps, trial.files.read_object(trial.traced))
            _require_sense(found)
    except FileNotFoundError:
        return NOT_KEPT
    except DamagedFile as problem:
        return str(problem)
    return found if found.steps else NOT_MADE


def _require_sense(found: TracedSteps) -> None:
    if found.version != VERSION:
        raise ValueError(f"it has version {found.version}; this bakeoff reads {VERSION}")
    count = sum(len(step.operations) for step in found.steps)
    if count > MOST_OPERATIONS or len(found.steps) > MOST_STEPS:
        raise ValueError("it holds more operations than are kept")
    for step in found.steps:
        if not 0 <= step.length_ns <= LONGEST_STEP_NS:
            raise ValueError(f"step {step.number} takes {step.length_ns} ns")
        for kind, start, length in step.operations:
            if not (0 <= kind < len(found.kinds) and start >= 0 and length >= 0):
                raise ValueError(f"an operation of step {step.number} is out of bounds")
            if start + length > step.length_ns:
                raise ValueError(f"an operation of step {step.number} ends after it")
