"""Find what really ran in a cell: from its probe, its cold trial and its trials' facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import DamagedFile
from harness.store.events.known_events import first_rank_events
from harness.store.layout import RunPaths, TrialPaths
from harness.store.outcome import read_complete
from harness.verdicts.asked_vs_ran import contradictions
from harness.verdicts.results import TrialResult, WhatRan

NOT_PROBED = "not probed"
WATCHED = "watched"


def what_ran(
    paths: RunPaths, cell_key: str, factors: Mapping[str, Any], trials: Sequence[TrialResult]
) -> WhatRan:
    """Join the probe's facts with those of the trials and compare them with the cell's factors."""
    probe, cold = paths.probe(cell_key), paths.cold(cell_key)
    facts_of_trial = next((trial.facts for trial in trials if trial.counted), {})
    if not facts_of_trial:
        facts_of_trial = next((trial.facts for trial in trials if trial.facts), {})
    # The trials' facts go before the probe's: the trials are what was timed.
    facts = {**_facts(probe), **facts_of_trial}
    facts.pop("versions", None)
    compiling = (_facts(cold), facts_of_trial, _facts(probe))
    return WhatRan(
        facts=facts,
        probe=_ended(probe),
        first_step_cold_s=_first_step(cold),
        compile_s=next((one["compile_s"] for one in compiling if "compile_s" in one), None),
        contradictions=contradictions(factors, facts) if facts else (),
    )


def _ended(probe: TrialPaths) -> str:
    if not probe.files.exists(probe.outcome):
        return NOT_PROBED
    try:
        how = read_complete(probe)
    except DamagedFile as problem:
        return str(problem)
    if how.is_ok:
        return WATCHED
    first_line = how.reason.partition("\n")[0]  # what it printed last comes below
    return f"{how.ended}: {first_line.rstrip('.')}"


def _facts(trial: TrialPaths) -> dict[str, Any]:
    if not trial.files.exists(trial.outcome):
        return {}
    stated = [event["facts"] for event in first_rank_events(trial) if event["event"] == "facts"]
    return dict(stated[0]) if stated else {}


def _first_step(cold: TrialPaths) -> float | None:
    """Give the time from building to the end of the first step: either may compile."""
    if not cold.files.exists(cold.outcome):
        return None
    built_ns = None
    for event in first_rank_events(cold):
        if event["event"] == "phase" and event["name"] == "build":
            built_ns = event["t"]
        if event["event"] == "window":
            elapsed_ns: int = event["end"] - (event["start"] if built_ns is None else built_ns)
            return elapsed_ns / 1e9
    return None
