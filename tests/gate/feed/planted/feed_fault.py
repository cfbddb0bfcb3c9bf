"""What a fault of a feed is: a source, what is put there, the cell that shows it, its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.gate.conftest import Change

RAW: Mapping[str, Any] = {"format": "raw", "shuffle": "global"}
ENCODED: Mapping[str, Any] = {"format": "raw", "shuffle": "none", "decode": True}
BGR = "the channels are exchanged: in reverse order .BGR for RGB"
MIRRORED = "left and right are exchanged"
HALF = "samples have half the size: shape"
BLOWN_UP = "samples are blown up from half the size"
NOT_SCALED = "the numbers are 128 times what they should be "
NO_LABELS = "every label is 0"
SHIFTED = "labels are shifted by one"
OF_OTHERS = "labels are those of other samples: sample"
REPEATED = "the first batch is fed again and again"


@dataclass(frozen=True)
class FeedFault:
    """One fault."""

    file: str
    change: Change
    words: str
    """How it is to be named: a pattern."""
    workload: str = "tinycnn"
    factors: Mapping[str, Any] | None = None


def instead(
    file: str,
    old: str,
    faults: Mapping[str, tuple[str, str]],
    workload: str = "tinycnn",
    factors: Mapping[str, Any] = RAW,
) -> dict[str, FeedFault]:
    """Put each of several faults where one piece of a source stands."""
    return {
        name: FeedFault(file, (old, new), words, workload, factors)
        for name, (new, words) in faults.items()
    }
