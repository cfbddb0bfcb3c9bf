"""Bring what the ranks of many trials said into arrays, some trials at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from harness.store.events import epoch_events, event_lines
from harness.store.layout import TrialPaths
from harness.store.records import TrialRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_AT_ONCE = 1 << 20
"""So many bytes are read together: more leave the processor's caches, less cost more calls."""
_ANCHOR = re.compile(rb'"mono_ns": ?(\d+)')
_BUILD = re.compile(rb'"phase", ?"name": ?"build", ?"t": ?(\d+)')
_HEAD = 1 << 13
"""Both stand among a rank's first lines."""
_KEPT = 1 << 24
"""Once so large a piece was given back, glibc keeps smaller ones (mallopt(3), M_MMAP_THRESHOLD)."""


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
    input: epoch_events.Input | None = None
    saves: tuple[Mapping[str, Any], ...] = ()
    """What it said of checkpoints."""
    first_word_ns: int | None = None
    """When it first said something, on the same clock."""
    opened_ns: int | None = None
    """When its framework was open and building began."""


def read_streams(
    trials: Sequence[TrialRecord],
) -> Iterator[tuple[TrialRecord, tuple[Stream, ...]]]:
    """Read the ranks of each trial that left an event file, in the order of the trials."""
    _keep_pages()
    waiting: list[tuple[TrialRecord, list[int]]] = []
    texts: list[bytes] = []
    size = 0
    for trial in trials:
        ranks = []
        for rank in trial.outcome.ranks:
            with suppress(FileNotFoundError):
                texts.append(TrialPaths(trial.directory).events(rank.rank).read_bytes())
                ranks.append(rank.rank)
                size += len(texts[-1])
        waiting.append((trial, ranks))
        if size >= _AT_ONCE:
            yield from _streams(waiting, texts)
            waiting, texts, size = [], [], 0
    yield from _streams(waiting, texts)


@cache
def _keep_pages() -> None:
    """Let what is freed be kept: else the kernel clears the same pages again for every batch."""
    bytes(_KEPT)  # never touched


def _streams(
    trials: Sequence[tuple[TrialRecord, Sequence[int]]], texts: Sequence[bytes]
) -> Iterator[tuple[TrialRecord, tuple[Stream, ...]]]:
    spoken = zip(event_lines.read(texts), texts, strict=True)
    for trial, ranks in trials:
        yield trial, tuple(_stream(rank, *next(spoken)) for rank in ranks)


def _stream(rank: int, spoken: event_lines.Spoken, text: bytes) -> Stream:
    first, opened = (said.search(text, 0, _HEAD) for said in (_ANCHOR, _BUILD))
    _, steps, start, end, _ = spoken.measured
    _, warm_steps, warm_start, warm_end, _ = spoken.warm_up
    return Stream(
        rank,
        steps,
        start,
        end - start,
        (warm_end - warm_start) // warm_steps.clip(1),
        spoken.told.get("units", {}),
        spoken.told.get("versions", {}),
        spoken.told.get("facts", {}),
        epoch_events.read(spoken),
        spoken.saves,
        int(first[1]) if first else None,
        int(opened[1]) if opened else None,
    )
