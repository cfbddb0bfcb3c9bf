"""Runs of one machine's nodes, as `bakeoff screen` leaves them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.runs import Behaviour, RecordedCell, Recording, write_run

NODES = 4


def screened(at: Path, slow: int | None, failed: Mapping[int, int] | None = None) -> Path:
    """Write a screen of several nodes, one of which may be slow; some fail in their first blocks.

    ``failed`` has the number of such blocks, by node.
    """
    cells = tuple(
        RecordedCell(
            workload="tinycnn",
            framework="torch",
            factors={"node": number},
            outcomes=dict.fromkeys(range(1, 1 + (failed or {}).get(number, 0)), "failed"),
            behaviour=Behaviour(step_s=0.02 if number == slow else 0.01, windows=20),
        )
        for number in range(1, NODES + 1)
    )
    return write_run(at, cells, Recording(trials=7))
