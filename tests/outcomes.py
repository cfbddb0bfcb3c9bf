"""Outcomes of trials that never ran."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import RunError
from harness.store.layout import TrialPaths
from harness.store.outcome import Ended, Outcome, write_outcome
from harness.store.seals import digest_of, digest_of_file

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


def seal(trial: TrialPaths) -> None:
    """Seal a trial anew after a test changed its files, as somebody who means it could."""
    raw = json.loads(trial.outcome.read_bytes())
    raw.pop("digest")
    told = (one for one in raw["files"] if (trial.root / one).exists())
    raw["files"] = {one: digest_of_file(trial.files, trial.root / one) for one in told}
    trial.outcome.write_text(json.dumps({**raw, "digest": digest_of(raw)}))


def seal_all(run: Path) -> None:
    """Seal all trials of a run anew that can be: what was planted is then read, not refused."""
    for outcome in run.glob("cells/*/*/outcome.json"):
        with suppress(OSError, ValueError, TypeError, LookupError, AttributeError, RunError):
            seal(TrialPaths(outcome.parent, run))
