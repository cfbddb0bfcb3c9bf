"""What a queue answers: its jobs, its free nodes, the nodes of its partitions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JobState:
    """What a queue says of a job: where it is, or how it ended."""

    word: str
    """PENDING, RUNNING …"""
    elapsed: str
    why: str


@dataclass(frozen=True)
class FreeNodes:
    """How much of a queue is free."""

    idle: int
    usable: int
    """Idle or allocated: what is down or drained serves nobody."""


@dataclass(frozen=True)
class NodesOffered:
    """Nodes alike, in one partition."""

    name: str
    """The partition's."""
    is_default: bool
    is_up: bool
    limit_min: float | None
    """How long a job may take at most; None: as long as it likes."""
    usable: int
    """Idle or allocated: what is down or drained serves nobody."""
    idle: int
    gpus: int
    """On each."""
