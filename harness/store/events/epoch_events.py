"""Epochs and waits for input that one rank recorded, read from its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.store.events.event_lines import RankEvents
from harness.store.events.window_lines import UNKNOWN

if TYPE_CHECKING:
    from harness.store.events.window_lines import Integers


@dataclass(frozen=True)
class Epoch:
    """One pass over a rank's share of the files, which ended while it was measured."""

    number: int
    event: Mapping[str, Any]
    elapsed_s: float
    """Of its windows: what lies between two epochs is outside."""
    waited_s: float


@dataclass(frozen=True)
class RankInput:
    """Epochs and waiting times of one rank in the measured phase."""

    epochs: tuple[Epoch, ...]
    is_whole: bool
    """Whether the measured windows are exactly those of the epochs."""
    elapsed_s: float
    waited_s: float


def read_rank_input(events: RankEvents) -> RankInput | None:
    """Join a rank's epochs and waits; None where it did not wait for any input."""
    import numpy as np

    if (events.warm_up[-1] == UNKNOWN).all() and (events.measured[-1] == UNKNOWN).all():
        return None
    windows = events.measured[:, events.measured[-1] != UNKNOWN]
    ends = [one for one in events.epochs if one.get("phase") == "measure"]
    first, steps, start, end, waited = windows
    began = [one for one in ends if first.size and one["first"] >= first[0]]
    every = np.concatenate((events.warm_up[:, events.warm_up[-1] != UNKNOWN], windows), axis=1)
    return RankInput(
        epochs=tuple(_epoch(one, every) for one in began or ends),
        is_whole=began == ends and sum(one["steps"] for one in ends) == int(steps.sum()),
        elapsed_s=int((end - start).sum()) / 1e9,
        waited_s=int(waited.sum()) / 1e9,
    )


def _epoch(event: Mapping[str, Any], windows: Integers) -> Epoch:
    first = windows[0]
    own = windows[:, (event["first"] <= first) & (first < event["first"] + event["steps"])]
    _, _, start, end, waited = own
    return Epoch(
        number=event["number"],
        event=event,
        elapsed_s=int((end - start).sum()) / 1e9,
        waited_s=int(waited.sum()) / 1e9,
    )
