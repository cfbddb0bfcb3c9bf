"""Measure what a trial's checkpoints cost, from the first rank's events and windows.

Training stands still between two windows, so a rate counts that time too; where saving is the work
it lies within the windows. A checkpoint is on its way from when training went on until it was
durable: a window that overlaps such a time was slowed by it, if anything was.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

from harness.verdicts.io_results import CheckpointResult

if TYPE_CHECKING:
    from harness.store.events.rank_streams import Stream

_FEWEST = 3
"""So many windows on each side at least, or nothing is said of how much slower steps were."""


def judge_checkpoints(stream: Stream, start: int) -> CheckpointResult | None:
    """Summarise the checkpoints of the measured phase; None where there were none."""
    taken = _taken(stream)
    if not taken:
        return None
    blocking = [one["end"] - one["start"] for one in taken]
    blocked = blocked_ns(stream, start)
    total = int(stream.elapsed_ns[start:].sum()) + blocked
    stood = blocked or min(total, sum(blocking))
    proof: Mapping[str, Any] = next((e for e in stream.saves if e["event"] == "restored"), {})
    return CheckpointResult(
        saver=str(taken[0]["saver"]),
        count=len(taken),
        state_bytes=int(taken[0]["bytes"]),
        blocking_s=median(blocking) / 1e9,
        saved_s=_until(stream, taken, "saved"),
        durable_s=_until(stream, taken, "durable"),
        restore_s=(proof["end"] - proof["start"]) / 1e9 if proof else None,
        restore_bytes=proof.get("bytes"),
        restore_cache=str(proof.get("cache") or "unknown"),
        inflation=_inflation(stream, taken, start) if blocked else None,
        blocked_share=stood / total if total else 0.0,
    )


def blocked_ns(stream: Stream, start: int) -> int:
    """Add up the time between steady windows in which training stood still for checkpoints."""
    if not stream.saves or start >= len(stream.steps):
        return 0
    begin = int(stream.start_ns[start])
    ends = stream.start_ns + stream.elapsed_ns
    total = 0
    for one in _taken(stream):
        is_within = bool(((stream.start_ns <= one["start"]) & (one["start"] < ends)).any())
        if one["start"] >= begin and not is_within:
            total += one["end"] - one["start"]
    return total


def _taken(stream: Stream) -> list[Mapping[str, Any]]:
    return [e for e in stream.saves if e["event"] == "checkpoint" and e["phase"] == "measure"]


def _moments(stream: Stream, state: str) -> dict[int, int]:
    """Give the time at which each step's checkpoint reached a state; the first one counts."""
    moments: dict[int, int] = {}
    for e in stream.saves:
        if e["event"] == "checkpoint-state" and e["state"] == state:
            moments.setdefault(e["step"], e["t"])
    return moments


def _until(stream: Stream, taken: list[Mapping[str, Any]], state: str) -> float | None:
    """Give the median time from a checkpoint's start to a state; None if one never did."""
    moments = _moments(stream, state)
    if any(one["step"] not in moments for one in taken):
        return None
    return float(median(moments[one["step"]] - one["start"] for one in taken)) / 1e9


def _inflation(stream: Stream, taken: list[Mapping[str, Any]], start: int) -> float | None:
    import numpy as np

    durable = _moments(stream, "durable")
    begins, ends = stream.start_ns[start:], (stream.start_ns + stream.elapsed_ns)[start:]
    step_ns = stream.elapsed_ns[start:] / stream.steps[start:]
    is_slowed = np.zeros(len(begins), dtype=bool)
    for one in taken:
        until = durable.get(one["step"])
        if until is None or until <= one["end"]:
            continue  # nothing was written in the background
        is_slowed |= (begins < until) & (ends > one["end"])
    slowed, free = step_ns[is_slowed], step_ns[~is_slowed]
    if len(slowed) < _FEWEST or len(free) < _FEWEST:
        return None
    return float(np.median(slowed) / np.median(free))
