"""What a queue answers: its jobs, its free nodes, the nodes of its partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import Unavailable
from harness.store import json_text


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
class QueueOffered:
    """A queue that jobs can be left to, or not now."""

    name: str
    is_up: bool
    """Whether it takes jobs and starts them."""
    limit_min: float | None = None
    """How long a job may take at most; None: as long as it likes, or nobody says."""


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


def printed_json(printed: str, program: str) -> Any:
    """Read what a queue's program printed as JSON; None where it printed nothing."""
    if not printed.strip():
        return None
    try:
        return json_text.parse(printed.encode())
    except ValueError as problem:
        raise Unavailable(f"{program} printed what is no JSON: {problem}.") from None


def text_of(row: Mapping[str, Any], key: str) -> str:
    """Give a text of such JSON on one line; "" where there is none."""
    value = row.get(key)
    return " ".join(value.split()) if isinstance(value, str) else ""
