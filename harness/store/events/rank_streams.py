"""Read the ranks' events of many trials into arrays, a batch of trials at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from harness.store.contained import MOST_EVENTS
from harness.store.events import epoch_events, event_lines
from harness.store.events.turn_events import Turn, read_turns
from harness.store.records import TrialRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

Losses = Sequence[tuple[int, float]]
"""Steps, and the loss after each."""

_AT_ONCE = 1 << 20
"""So many bytes are read together: more leave the processor's caches, less cost more calls."""
_ANCHOR = re.compile(rb'"mono_ns": ?(\d+)')
_BUILD = re.compile(rb'"phase", ?"name": ?"build", ?"t": ?(\d+)')
_HEAD = 1 << 13
"""Both stand among a rank's first lines."""
_LOSS = re.compile(
    rb'"event": ?"values", ?"step": ?(\d{1,9}), ?"values": ?\{[^}]*?"loss": ?([-+.\w]{1,32})'
)
_LOSSES = 50
_EARLY = 1 << 16
"""Enough for so many losses, one to a window."""
_LAST_LOSSES = 10
_AMID, _AMID_LOSSES = (0.25, 0.5, 0.75), 5
"""Where in a rank's events a few losses in a row are read: of a thousand all would take longer than
everything else that is read of a trial."""
_KEPT = 1 << 24
"""Once so large a piece was given back, glibc keeps smaller ones (mallopt(3), M_MMAP_THRESHOLD)."""


@dataclass(frozen=True)
class Stream:
    """The events of one rank of one trial, as far as statistics need them."""

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
    input: epoch_events.RankInput | None = None
    saves: tuple[Mapping[str, Any], ...] = ()
    """The events of its checkpoints."""
    turns: tuple[Turn, ...] = ()
    """Those that it took; none where its trial ran alone."""
    first_word_ns: int | None = None
    """Time of its first event, on the same clock."""
    opened_ns: int | None = None
    """Time at which its framework was loaded and building started."""
    losses: Losses = ()
    """The first ones that it said."""
    amid_losses: tuple[Losses, ...] = ()
    """A few in a row, from several places between the first and the last."""
    last_losses: Losses = ()
    """The last ones that it said."""
    damaged: tuple[str, ...] = ()
    """The lines of its file that are left out, or facts of which are, and why."""


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
                events = trial.paths.events(rank.rank)
                texts.append(trial.paths.files.read_bytes(events, MOST_EVENTS))
                ranks.append(rank.rank)
                size += len(texts[-1])
        waiting.append((trial, ranks))
        if size >= _AT_ONCE:
            yield from _streams(waiting, texts)
            waiting, texts, size = [], [], 0
    yield from _streams(waiting, texts)


@cache
def _keep_pages() -> None:
    """Make the allocator keep freed memory: else the kernel clears its pages for every batch."""
    bytes(_KEPT)  # never touched


def _streams(
    trials: Sequence[tuple[TrialRecord, Sequence[int]]], texts: Sequence[bytes]
) -> Iterator[tuple[TrialRecord, tuple[Stream, ...]]]:
    events = zip(event_lines.read_event_files(texts), texts, strict=True)
    for trial, ranks in trials:
        yield trial, tuple(_stream(trial, rank, *next(events)) for rank in ranks)


def _stream(trial: TrialRecord, rank: int, events: event_lines.RankEvents, text: bytes) -> Stream:
    first, opened = (pattern.search(text, 0, _HEAD) for pattern in (_ANCHOR, _BUILD))
    _, steps, start, end, _ = events.measured
    _, warm_steps, warm_start, warm_end, _ = events.warm_up
    return Stream(
        rank,
        steps,
        start,
        end - start,
        (warm_end - warm_start) // warm_steps.clip(1),
        events.properties.get("units", {}),
        events.properties.get("versions", {}),
        events.properties.get("facts", {}),
        epoch_events.read_rank_input(events),
        events.saves,
        read_turns(events.turns),
        int(first[1]) if first else None,
        int(opened[1]) if opened else None,
        _losses(text, 0, _EARLY),
        tuple(_losses(text, int(at * len(text)), len(text), _AMID_LOSSES) for at in _AMID),
        _losses(text, _late(text), len(text))[-_LAST_LOSSES:],
        tuple(_damaged(trial, rank, events, text)),
    )


def _late(text: bytes) -> int:
    """Give a place in a rank's events shortly before its last losses."""
    at = len(text)
    for _ in range(2 * _LAST_LOSSES):  # the word is said twice, as the event and as its field
        at = max(0, text.rfind(b'"values"', 0, at))
    return text.rfind(b"\n", 0, at) + 1


def _losses(text: bytes, start: int, end: int, most: int = _LOSSES) -> Losses:
    found = []
    for match in islice(_LOSS.finditer(text, start, end), most):
        step, loss = match.groups()
        try:  # of fifty each trial has, `suppress` would take three times as long
            found.append((int(step), float(loss)))
        except ValueError:
            continue
    return found


def _damaged(
    trial: TrialRecord, rank: int, events: event_lines.RankEvents, text: bytes
) -> Iterator[str]:
    """Name the damaged lines of a rank; the last of one that was killed may be unfinished."""
    if not events.damaged:
        return
    file = trial.paths.events(rank)
    unfinished = None if trial.outcome.is_ok else text.count(b"\n") + 1
    for number, fault in events.damaged[: event_lines.NAMED]:
        if number != unfinished:
            yield f"{file}:{number} is damaged: {fault}. It is left out."
    if len(events.damaged) > event_lines.NAMED:
        yield f"{file}: further lines are damaged, and left out."
