"""The job: the JSON that the host writes and each rank's worker reads."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional

from harness.worker.scale import Scale

_OF_PROOFS = ("proof", "proved")

VERSION = 3  # 1: first; 2: environment; 3: scale, whose factors are none of the others


@dataclass(frozen=True)
class Span:
    """A stretch of a trial, in steps or in seconds; exactly one is set."""

    steps: Optional[int] = None
    seconds: Optional[float] = None

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.seconds is None):
            raise ValueError("a span counts steps or seconds, not {}".format(self))


@dataclass(frozen=True)
class Job:
    """One trial as its ranks see it; every factor is resolved, and every path is absolute
    but those of what it makes in its own directory.
    """

    purpose: str  # "trial", or an adapter's untimed door: "probe", "examine"; "" as adapters see it
    cell_key: str
    trial: str
    workload: str
    workload_module: str
    framework: str
    adapter_module: str
    environment: str  # the one its ranks start in: "torch@horovod", "tensorflow[dataset]"
    strategy: str
    scale: Scale
    factors: Dict[str, Any]
    """Those that the scale does not tell."""
    options: Dict[str, Any]
    warmup: Span
    until: Span
    seed: int
    directory: str
    paths: Dict[str, str] = field(default_factory=dict)
    window_steps: Optional[int] = None
    """Of each measured window, as in the cell's first trial; None: the loop chooses."""
    variables: Dict[str, Any] = field(default_factory=dict)
    """Patterns of the variables that are recorded (``facts/variables.py``)."""
    known: List[str] = field(default_factory=list)
    """Kernels and layers whose ceilings are known of this machine: a job of ceilings leaves them
    out."""


def read(path: str) -> Job:
    """Read a job; refuse one written by another version."""
    with open(path, encoding="utf-8") as file:
        raw = json.load(file)
    version = raw.pop("version")
    if version != VERSION:
        raise ValueError("job version {} is not {}".format(version, VERSION))
    raw["scale"] = Scale(**raw["scale"])
    raw["warmup"] = Span(**raw["warmup"])
    raw["until"] = Span(**raw["until"])
    return Job(**raw)


def micro_batches(factors: Mapping[str, Any]) -> int:
    """Say in how many parts a step computes its batch; in one where nobody asks for more."""
    return int(factors.get("accumulate") or 1)


def recomputes(factors: Mapping[str, Any]) -> bool:
    """Say whether a step keeps what enters its network's blocks, and computes the rest anew."""
    return bool(factors.get("recompute"))


def text(job: Job) -> str:
    """Write a job as JSON, on one line: indenting is slow, and each trial has one."""
    values = {name: vars(getattr(job, name)) for name in ("scale", "warmup", "until")}
    given = {"version": VERSION, **vars(job), **values}
    if not job.known:
        del given["known"]  # which code of earlier versions does not have
    return json.dumps(given, sort_keys=True)


def without_purpose(job: Job) -> Job:
    """Leave out what would tell an adapter whether it is timed or probed, and what is examined."""
    paths = {name: path for name, path in job.paths.items() if name not in _OF_PROOFS}
    return replace(job, purpose="", paths=paths)
