"""Read what kernels reached at most on the machine of a run: in an untimed job, or before it.

``ceilings.json`` holds those that concern a run's cells, also what earlier runs measured there;
each names the folder whose windows it was taken from.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from harness.store.contained import MIB
from harness.store.events.known_events import first_rank_events
from harness.store.layout import RunPaths, TrialPaths
from harness.store.typed import damage, read
from harness.worker.network.alone import PASSES_DONE

VERSION = 1  # 1: first
COMPUTE, MEMORY, LAYER = "FLOP", "bytes", PASSES_DONE
"""Units. A layer's pass is one of a batch, and its kernel the words of ``least_words``."""
REFUSED = "refused"
"""In place of a unit, of what was tried in vain: no run has it, and no later run tries it again."""
_UNITS = (COMPUTE, MEMORY, LAYER, REFUSED)
_NOTHING_PER_S = 1e-9
_MOST_READ = 16 * MIB
_MOST = 10_000


@dataclass(frozen=True)
class Reached:
    """The most of a kernel's work that was done in a second, in any window."""

    kernel: str
    unit: str
    per_s: float
    cache_bytes: int | None
    """Of the last level, of the CPUs that it ran on; None if unknown."""


@dataclass(frozen=True)
class Conditions:
    """Under what a ceiling holds."""

    framework: str
    environment: str
    """A digest of the interpreter's packages, their files and what steers them."""
    device: str
    precision: str
    threads: int | None
    """As many as its cell asks for; None: those that its framework takes by itself."""


@dataclass(frozen=True)
class Ceiling:
    """What a kernel reached at most, and how that is known."""

    under: Conditions
    reached: Reached
    measured_in: str
    """The folder with its windows: of a run, by the run's name."""
    measured_wall_ns: int


def read_ceilings(paths: RunPaths) -> tuple[Ceiling, ...]:
    """Give the ceilings that a run knows; none where nothing measured any."""
    if not paths.files.exists(paths.ceilings):
        return ()
    raw = paths.files.read_object(paths.ceilings)
    with damage(paths.ceilings):
        return usable(raw)


def usable(raw: Any) -> tuple[Ceiling, ...]:
    """Read ceilings as they are written; raise ValueError where something else is."""
    found = read(_File, raw)
    if found.version != VERSION:
        raise ValueError(f"version: {found.version} is not known here")
    if len(found.ceilings) > _MOST:
        raise ValueError(f"ceilings: {len(found.ceilings)} are too many")
    for number, one in enumerate(found.ceilings):
        if (
            not one.reached.per_s > 0
            or not isfinite(1 / one.reached.per_s)
            or one.reached.unit not in _UNITS
        ):
            raise ValueError(f"ceilings[{number}].reached: it says no rate")
    return found.ceilings


def reached_in(trial: TrialPaths) -> tuple[Reached, ...]:
    """Read what an untimed job's kernels reached, from its windows, and what was refused."""
    found: list[Reached] = []
    head: dict[str, Any] | None = None
    best = 0.0
    for event in (*first_rank_events(trial, _MOST_READ), {"event": "ceiling"}):
        if event["event"] == "window" and event["phase"] == "measure" and head is not None:
            took_ns = event["end"] - event["start"]
            if took_ns > 0 and head["work"]:
                best = max(best, head["work"] * event["steps"] / took_ns * 1e9)
        elif event["event"] == "ceiling":
            if head is not None and best > 0 and isfinite(best):
                found.append(Reached(head["kernel"], head["unit"], best, head.get("cache_bytes")))
            elif head is not None and not head["work"]:
                found.append(Reached(head["kernel"], REFUSED, _NOTHING_PER_S, None))
            head, best = (event if "kernel" in event else None), 0.0
    return tuple(one for one in found if one.unit in _UNITS)


@dataclass(frozen=True)
class _File:
    """What is read of ``ceilings.json``."""

    version: int
    ceilings: tuple[Ceiling, ...]
