"""What a job asks of checkpoints: how often, whereto, and through which fast tier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional

from harness.worker.network.workload import Checkpointing, Workload

TO, THROUGH = "checkpoint_to", "checkpoint_through"
"""The names of a job's paths: a folder of this trial's own on each tier."""


@dataclass(frozen=True)
class Asked:
    """One trial's checkpoints."""

    every: int
    """Steps from one to the next."""
    to: str
    through: Optional[str]
    """None: straight to where they stay."""
    is_the_work: bool
    """Whether saving is what a step does, and lies within its clock."""


def asked(
    workload: Workload, factors: Mapping[str, Any], paths: Mapping[str, str]
) -> Optional[Asked]:
    """Bring a job's factors and paths together; None if it takes no checkpoints."""
    every = factors.get("checkpoint_every")
    if every is None:
        return None
    is_the_work = isinstance(workload, Checkpointing)
    return Asked(int(every), paths[TO], paths.get(THROUGH), is_the_work)
