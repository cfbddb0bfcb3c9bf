"""This file judges one finished trial from its files, so that a rejected one can be run again."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from harness.stats.verdict import rejecting
from harness.store.layout import TrialPaths
from harness.store.records import RunRecord, read_run, read_trial
from harness.store.streams import read_streams
from harness.store.trial import judge_trial


def doubt(trial: TrialPaths) -> str | None:
    """Say why a trial that ended well cannot be believed; None if nothing speaks against it."""
    run = _run(trial.root.parents[2])
    record = read_trial(run, trial)
    unit = next(cell.unit for cell in run.cells if cell.key == record.cell_key)
    ((_, streams),) = read_streams([record])
    tolerated = run.info.measure.get("tolerate") or ()
    judged = judge_trial(record, streams, unit, tolerated=tolerated, run=run)
    if judged.verdict not in rejecting(tolerated):
        return None
    return f"{judged.verdict}: {judged.evidence[0]}"


@lru_cache(maxsize=1)
def _run(root: Path) -> RunRecord:
    return read_run(root)
