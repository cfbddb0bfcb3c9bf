"""Ask whether a trial's framework can have trained at all, and at the rate that was timed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from harness import plugins
from harness.errors import BakeoffError
from harness.store.events.rank_streams import Stream
from harness.store.records import CellRecord, RunRecord, TrialRecord
from harness.verdicts.credibility import amount, learning, plausible
from harness.verdicts.thresholds import Finding
from harness.worker.network.workload import Training, learning_rate

FLOOR = "null"
"""The framework that computes nothing, and says so: what the harness itself costs."""


def judge_credibility(
    run: RunRecord | None, record: TrialRecord, streams: Sequence[Stream], rate: float | None
) -> tuple[Finding, ...]:
    """Judge what a framework said and how fast it was; one that computes nothing is not asked."""
    if run is None or record.outcome.origin != "measured":
        return ()
    cell = run.cell(record.outcome.cell_key)
    if cell.framework == FLOOR:
        return ()
    learns = (cell.factors.get("precision"), _learning_rate(cell))
    return (
        *learning.judge_losses(streams, *learns),
        *learning.judge_pauses(streams, *learns),
        *learning.judge_masks(streams),
        *amount.judge_amount(streams),
        *_start(streams),
        *plausible.judge_rate(
            run.info,
            cell,
            rate,
            _fastest(streams, cell.unit),
            hosts=tuple(record.hosts.values()),
            device_name=streams[0].facts.get("device_name"),
        ),
    )


def _fastest(streams: Sequence[Stream], unit: str) -> float | None:
    """Give the highest rate that any rank had in any window, each of which waits for its steps."""
    rates = [
        stream.units[unit] * 1e9 * float((stream.steps[some] / stream.elapsed_ns[some]).max())
        for stream in streams
        if unit in stream.units and (some := stream.elapsed_ns > 0).any()
    ]
    return max(rates, default=None)


def _start(streams: Sequence[Stream]) -> list[Finding]:
    """Mark a trial that did not start from what it was given: its speed is none the worse."""
    wrong = [(stream.facts.get("start") or {}).get("differs") for stream in streams]
    text = "it did not start from the weights and the batch that it was given: {} is another"
    return [Finding("valid", text.format(name)) for name in wrong if name is not None]


@cache
def _workload(name: str) -> Any:
    """Find a workload once, not for each trial: finding one lists a folder."""
    return plugins.workload(name)


def _learning_rate(cell: CellRecord) -> float | None:
    """Give the rate that a cell's network learns at; None where it is not of this installation."""
    try:
        workload = _workload(cell.workload)
    except BakeoffError:
        return None
    if not isinstance(workload, Training):
        return None
    return learning_rate(workload.optimiser, cell.scale.batch_per_step)
