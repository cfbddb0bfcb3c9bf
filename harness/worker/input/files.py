"""Describe what a rank reads and how: the factors of its job, brought together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

from harness.worker.input.dataset import UINT16, texts_of
from harness.worker.place import Place

COLD, WARM, AS_FOUND = "cold", "warm", "as-found"


@dataclass(frozen=True)
class Files:
    """One rank's input."""

    folder: str
    format: str
    reader: str
    threads: int
    prefetch: int
    buffers: int
    buffer_samples: int
    """0: no buffer to permute within."""
    shuffle: str
    cache: str
    """What the page cache is to hold as an epoch begins: cold, warm, as-found."""
    decode: bool
    compute: str
    compute_ms: float
    seed: int
    """Of the order: the same in every rank."""
    rank: int
    size: int
    is_first_here: bool
    """Whether it is the first rank on its node, whose page cache they share."""
    meeting: str
    """The folder where the trial's ranks meet; empty where there is none."""


def samples_of(factors: Mapping[str, Any]) -> int:
    """Count the samples of what a cell's factors say is read: of a file of tokens, its texts."""
    held: int = factors["samples"]
    return texts_of(held, factors["sequence"]) if factors["format"] == UINT16 else held


def described(
    factors: Mapping[str, Any], folder: str, seed: int, place: Place, meeting: str = ""
) -> Files:
    """Describe what a job's rank reads."""
    return Files(
        folder=folder,
        format=factors["format"],
        reader=factors["reader"],
        threads=factors.get("reader_threads") or 1,
        prefetch=factors.get("prefetch") or 0,
        buffers=factors.get("buffers") or 1,
        buffer_samples=factors.get("buffer_samples") or 0,
        shuffle=factors.get("shuffle") or "none",
        cache=factors.get("cache") or AS_FOUND,
        decode=factors.get("decode") or False,
        compute=factors.get("compute") or "none",
        compute_ms=factors.get("compute_ms") or 0.0,
        seed=seed,
        rank=place.rank,
        size=place.size,
        is_first_here=place.local_rank == 0,
        meeting=meeting,
    )
