"""Examine a run's cells by the gate before their trials, with the code that they run.

The payload that is examined is the run's own copy, which nobody edits meanwhile. Each result is
kept as soon as it is known, by the fingerprint that the cell's trials carry: after ``--mix`` the
changed cells have another one and are examined again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import asdict, replace
from typing import Any

from harness.gate.result import Result, with_log
from harness.plan.plan import Plan
from harness.ranks.payload import copied
from harness.run.progress import ProgressListener
from harness.run.setup import TrialBasis
from harness.store import gate_results
from harness.store.layout import RunPaths
from harness.store.records import (
    DIFFERS,
    EQUIVALENT,
    EXAMINATION_FAILED,
    IN_PART,
    NAMED,
    NOT_CHECKED,
)
from harness.store.run_directory import session_log, trial_folders
from harness.store.run_directory.identity import Identity

Prove = Callable[..., Mapping[str, Result]]
"""The gate's ``ensure``, or what stands in for it."""

_MARKS = {
    EQUIVALENT: "✓",
    NAMED: "≈",
    IN_PART: "◐",
    NOT_CHECKED: "?",
    EXAMINATION_FAILED: "!",
    DIFFERS: "✗",
}


def unproved(paths: RunPaths, plan: Plan, only: Container[str] | None) -> set[str]:
    """Name the cells with trials of code that the gate has not examined."""
    return {
        key
        for key, ran in _ran(paths).items()
        if (only is None or key in only) and ran - gate_results.checked_fingerprints(paths, key)
    } & {cell.key for cell in plan.cells}


def prove(
    paths: RunPaths,
    plan: Plan,
    basis: TrialBasis,
    known: Identity,
    *,
    waiting: Collection[str],
    observer: ProgressListener,
    ensure: Prove,
) -> int:
    """Examine what has no result yet; give the exit code if somebody stopped it, else 0.

    What a cell ran before, and would not run now, can no longer be examined: it stays unchecked.
    """
    now, ran = basis.fingerprints, _ran(paths)
    due = {
        cell.key: now[cell.key]
        for cell in plan.cells
        if now[cell.key] == known.accepted.get(cell.key)
        and (cell.key in waiting or now[cell.key] in ran.get(cell.key, ()))
        and now[cell.key] not in gate_results.checked_fingerprints(paths, cell.key)
    }
    if not due:
        return 0

    for key in due:
        if gate_results.is_edited(paths, key):
            name = f"gate/{key}.json"
            observer.noted(f"{name} was changed by hand and is not believed: examining anew.")
    named: dict[str, Result] = {}

    def keep(key: str, result: Result) -> None:
        if result.log:
            file = gate_results.store_log(paths, key, result.log)
            result = with_log(result, str(file.relative_to(paths.root)))
        named[key] = result
        gate_results.store_result(paths, key, due[key], asdict(replace(result, log="")))

    some = replace(plan, cells=tuple(cell for cell in plan.cells if cell.key in due))
    ensured: dict[str, Result] = {}
    try:
        for folder in dict.fromkeys(cell.payload for cell in some.cells):
            alike = replace(some, cells=tuple(c for c in some.cells if c.payload == folder))
            payload = copied(paths.root / (folder or known.payload), paths.files, basis.payload)
            ensured |= ensure(alike, keep=keep, watch=observer.doing, payload=payload)
    except (KeyboardInterrupt, SystemExit) as stop:
        session_log.log(paths, "gate interrupted")
        return int(getattr(stop, "code", None) or 130)
    found = {**ensured, **named}
    session_log.log(paths, "gate", found={key: result.state for key, result in found.items()})
    observer.noted("\n".join(in_words(some, found)))
    return 0


def in_words(plan: Plan, found: Mapping[str, Result]) -> list[str]:
    """Count the cells by result, and name those that are not simply equivalent."""
    counts = Counter(one.state for one in found.values())
    counts_text = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    doubtful = [cell.key for cell in plan.cells if found[cell.key].state != EQUIVALENT]
    return [f"Gate: {counts_text}.", *(f"  {line}" for line in lines(plan, found, doubtful))]


def lines(plan: Plan, found: Mapping[str, Result], keys: Container[str]) -> list[str]:
    """Give one line for each cell's result."""
    width = max(len(cell.label) for cell in plan.cells)
    return [
        f"{_MARKS[found[cell.key].state]} {cell.label:<{width}}  {found[cell.key]}"
        for cell in plan.cells
        if cell.key in keys
    ]


def _ran(paths: RunPaths) -> dict[str, set[Any]]:
    """Give the fingerprints of each cell's trials that ended well."""
    return {
        key: {one.fingerprint for one in trials.values() if one.is_ok}
        for key, trials in trial_folders.outcomes(paths).items()
    }
