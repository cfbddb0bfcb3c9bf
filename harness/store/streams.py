"""This file brings what the ranks of many trials said into arrays, one trial at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.store import epochs, event_lines, tables
from harness.store.records import TrialRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Stream:
    """What one rank of one trial said, as far as statistics need it."""

    rank: int
    steps: Integers
    """Steps in each measured window, in order of time."""
    start_ns: Integers
    """When each began, on the clock of the rank's node."""
    elapsed_ns: Integers
    warm_up_ns: Integers
    """Time of one step in each warm-up window, in order."""
    units: Mapping[str, float]
    versions: Mapping[str, str]
    facts: Mapping[str, Any]
    input: epochs.Input | None = None
    saves: tuple[Mapping[str, Any], ...] = ()
    """What it said of checkpoints."""


def read_streams(
    trials: Sequence[TrialRecord],
) -> Iterator[tuple[TrialRecord, tuple[Stream, ...]]]:
    """Read the ranks of each trial that left an event file, in the order of the trials."""
    for trial in trials:
        files = ((rank.rank, Path(tables.event_file(trial, rank.rank))) for rank in trial.ranks)
        yield trial, tuple(_stream(rank, file) for rank, file in files if file.exists())


def _stream(rank: int, file: Path) -> Stream:
    data = file.read_bytes()
    spoken = event_lines.read(data)
    _, steps, start, end = spoken.measured.T
    _, warm_steps, warm_start, warm_end = spoken.warm_up.T
    return Stream(
        rank,
        steps,
        start,
        end - start,
        (warm_end - warm_start) // warm_steps.clip(1),
        spoken.told.get("units", {}),
        spoken.told.get("versions", {}),
        spoken.told.get("facts", {}),
        epochs.read(data),
        spoken.saves,
    )
