"""Outcomes of trials that never ran."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.store.layout import TrialPaths
from harness.store.outcome import Ended, Outcome, write_outcome

_WELL = Outcome(
    cell_key="abc",
    trial="trial-1",
    ended=Ended.OK,
    reason="",
    origin="measured",
    fingerprint="f1",
    mixed=False,
    position=1,
    started_wall_ns=1_000_000_000,
    ended_wall_ns=4_000_000_000,
)


def ended(how: str = "ok", **changes: Any) -> Outcome:
    """Give the outcome of a trial of three seconds."""
    return replace(_WELL, ended=Ended(how), **changes)


def record(trial: TrialPaths, how: str = "ok", **changes: Any) -> None:
    """Make a trial's folder, complete."""
    trial.root.mkdir(parents=True, exist_ok=True)
    names = {"cell_key": trial.root.parent.name, "trial": trial.root.name}
    write_outcome(ended(how, **names, **changes), trial, settled=False)
