"""What a session asks of a trial that has just ended, which it may answer with another attempt."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from harness.store.events.rank_streams import read_streams
from harness.store.layout import TrialPaths
from harness.store.record_readers.run_reader import read_run
from harness.store.record_readers.trial_reader import read_trial, read_trials
from harness.store.records import RunRecord, TrialRecord
from harness.verdicts import recurring
from harness.verdicts.results import TrialResult
from harness.verdicts.thresholds import repeated
from harness.verdicts.trial import judge_trial


def doubt(trial: TrialPaths) -> str | None:
    """Give the reason why a trial that ended well is to be run again; None if it is not."""
    run, judged = _run(trial.root.parents[2]), _last_judged(trial.root)
    tolerated = run.info.measure.get("tolerate") or ()
    if judged.verdict not in repeated(tolerated):
        return None
    if judged.verdict == recurring.STALLED:
        cell = judged.cell_key
        others = [one for one in read_trials(run).records if one.outcome.cell_key == cell]
        if recurring.is_own_stall([_judged(run, one) for one in others]):
            return None
    return f"{judged.verdict}: {judged.evidence[0]}"


def alternations(trial: TrialPaths) -> tuple[float, ...]:
    """Give by how much a trial's rate right after another's turn differed from its rate in the same
    turn, as logarithms.
    """
    taken = _last_judged(trial.root).turns
    return () if taken is None else taken.alternations


@lru_cache(maxsize=1)
def _last_judged(trial: Path) -> TrialResult:
    """Judge a trial that has ended: what is asked of it one after the other reads it once."""
    root = trial.parents[2]
    return _judged(_run(root), read_trial(_run(root), TrialPaths(trial, root)))


def _judged(run: RunRecord, record: TrialRecord) -> TrialResult:
    unit = run.cell(record.outcome.cell_key).unit
    ((_, streams),) = read_streams([record])
    tolerated = run.info.measure.get("tolerate") or ()
    return judge_trial(record, streams, unit, tolerated=tolerated, run=run)


@lru_cache(maxsize=1)
def _run(root: Path) -> RunRecord:
    return read_run(root)
