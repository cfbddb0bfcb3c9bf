"""What a fault of a feed is: a source, what is put there, the cell that shows it, its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.gate.conftest import Change

RAW: Mapping[str, Any] = {"format": "raw", "shuffle": "global"}
ENCODED: Mapping[str, Any] = {"format": "raw", "shuffle": "none", "decode": True}
BLOWN_UP = "samples are blown up from half the size"
OF_OTHERS = "labels are those of other samples: sample"
_BGR = "the channels are exchanged: in reverse order .BGR for RGB"
_MIRRORED = "left and right are exchanged"
KNOWN = {
    "channels in reverse order": _BGR,
    "no scaling": "the numbers are 128 times what they should be ",
    "samples mirrored": _MIRRORED,
    "samples of half the size": "samples have half the size: shape",
    "samples blown up": BLOWN_UP,
    "labels that are all 0": "every label is 0",
    "labels one too high": "labels are shifted by one",
    "labels one too high, of ten": "labels are shifted by one",
    "labels of neighbours": OF_OTHERS,
    "the first batch for ever": "the first batch is fed again and again",
    "pictures in BGR": _BGR,
    "pictures mirrored": _MIRRORED,
}
"""Faults of several frameworks, and the words that name each."""


@dataclass(frozen=True)
class FeedFault:
    """One fault."""

    file: str
    change: Change
    words: str
    """How it is to be named: a pattern."""
    workload: str
    factors: Mapping[str, Any]


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


def known(
    file: str,
    old: str,
    new: Mapping[str, str],
    workload: str = "tinycnn",
    factors: Mapping[str, Any] = RAW,
) -> dict[str, FeedFault]:
    """Put faults of that table where one piece of a source stands."""
    faults = {name: (text, KNOWN[name]) for name, text in new.items()}
    return instead(file, old, faults, workload, factors)
