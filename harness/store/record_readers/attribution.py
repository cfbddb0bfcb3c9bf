"""Read which layer and pass took which share of a cell's step, as its untimed job said it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from harness.errors import DamagedFile
from harness.store.contained import MIB
from harness.store.events.known_events import first_rank_events
from harness.store.layout import RunPaths
from harness.store.outcome import read_complete
from harness.store.typed import read

MOST_READ = 64 * MIB
MOST_PARTS = 10_000
MOST_STEPS = 1_000
ROUNDED = 0.01
"""What the shares of a step may miss of 1: each is rounded."""
NOT_MADE = "nothing attributed its step"


@dataclass(frozen=True)
class Operation:
    """One kind of operation of a part."""

    name: str
    type: str
    shapes: str
    times: float
    """A step."""
    share: float
    """Of the part."""


@dataclass(frozen=True)
class Part:
    """What one layer took in one phase; ``harness/worker/events.py`` names the phases."""

    site: str
    """The layer's path; empty for none."""
    phase: str
    shares: tuple[float, ...]
    """Of each traced step."""
    operations: tuple[Operation, ...]
    more: int


@dataclass(frozen=True)
class Attribution:
    """How the steps of a cell divide, while they were traced."""

    traced_by: str
    step_s: tuple[float, ...]
    parts: tuple[Part, ...]
    untraced_s: tuple[float, ...] = ()
    """Steps that the same job made between, or before and after, the traced ones."""


def read_attribution(paths: RunPaths, cell_key: str) -> Attribution | str:
    """Give a cell's attribution, or why there is none."""
    trial = paths.attribution(cell_key)
    try:
        if not trial.files.exists(trial.outcome):
            return NOT_MADE
        how = read_complete(trial)
    except DamagedFile as problem:
        return str(problem)
    if not how.is_ok:
        first_line = how.reason.partition("\n")[0].rstrip(".")
        return f"its step could not be attributed: {first_line or how.ended}"
    return _joined(list(first_rank_events(trial, MOST_READ)))


def _joined(events: list[dict[str, Any]]) -> Attribution | str:
    """Join the events of one file; one that does not fit the others makes them all worthless."""
    heads = [one for one in events if one["event"] == "attribution"]
    said = [one for one in events if one["event"] == "part"]
    if len(heads) != 1 or not said or len(said) > MOST_PARTS:
        return "the events of its attribution are damaged"
    step_s = tuple(float(one) for one in heads[0]["step_s"])
    untraced_s = tuple(float(one) for one in heads[0].get("untraced_s") or ())
    try:
        parts = tuple(read(Part, one) for one in said)
    except ValueError as fault:
        return f"the events of its attribution are damaged: {fault}"
    is_whole = all(len(one.shares) == len(step_s) for one in parts)
    in_bounds = all(0 <= share <= 1 for one in parts for share in one.shares)
    if not 0 < len(step_s) <= MOST_STEPS or min(step_s) <= 0 or not (is_whole and in_bounds):
        return "the events of its attribution are damaged: its shares fit no step"
    if len(untraced_s) > MOST_STEPS or not all(0 < one < math.inf for one in untraced_s):
        return "the events of its attribution are damaged: its untraced steps took no time"
    sums = [sum(shares) for shares in zip(*(one.shares for one in parts), strict=True)]
    if any(abs(one - 1) > ROUNDED for one in sums):
        return "the events of its attribution are damaged: its shares do not add up"
    return Attribution(str(heads[0]["traced_by"]), step_s, parts, untraced_s)
