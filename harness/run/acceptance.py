"""Decide whether a run may go on here: what its trials ran must be what they would run now.

``run.json`` keeps each cell's first fingerprint and the accepted one. What changed in between is
said in words, and these are kept where a session goes on in spite of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.environments.identity.changes import changes
from harness.environments.worker_python import Interpreter
from harness.errors import RunError
from harness.plan.plan import Plan
from harness.ranks.payload import copied
from harness.run import trust
from harness.run.setup import TrialBasis, of_payload, record, record_environments, write_payload
from harness.run.trust import Trust
from harness.store.layout import RunPaths
from harness.store.run_code import MIXED, mixes
from harness.store.run_directory import session_log, trial_folders
from harness.store.run_directory.identity import Identity, identity


def accept(
    paths: RunPaths,
    plan: Plan,
    basis: TrialBasis,
    waiting: Iterable[str],
    *,
    mix: bool,
    allowed: Trust,
) -> tuple[Identity, TrialBasis]:
    """Refuse to go on with changed code, environment or platform, unless ``mix`` is set.

    The run's own copy of the code must be known, or trusted. What is trusted is what runs, and the
    fingerprints are of it; without that, ``mix`` replaces a copy that is not known.
    """
    known = identity(paths)
    payload = paths.root / known.payload
    is_kept = allowed.payload or not mix or trust.knows_payload(paths, basis.payload, allowed)
    if is_kept and trust.admit_payload(paths, basis.payload, allowed) and not mix:
        there = copied(payload, paths.files, basis.payload)
        basis = of_payload(plan, basis.interpreters, there, basis.own)
        words = _environment_changes(paths, basis)
        record_environments(paths, basis)
        accepted = {**known.accepted, **basis.fingerprints}
        record(paths, {}, accepted=accepted, **{MIXED: [*mixes(paths), *words]})
        return identity(paths), basis
    known = _with_its_variables(paths, plan, basis, known)
    changed = [key for key in waiting if basis.fingerprints[key] != known.accepted.get(key)]
    if is_kept and not changed:
        return known, basis
    words = _what_changed(paths, basis)
    if not mix:
        labels = _indented(plan.cell(key).label for key in changed)
        raise RunError(
            f"{paths.root}: the code, environment or platform of these cells has changed "
            f"since their first trials:{labels}\nWhat changed:{_indented(words)}\n"
            "Run the study anew, or go on with --mix, which the report will show."
        )
    session_log.log(paths, "mixed", changed=words)
    payload = _next_payload(paths)
    digests = write_payload(payload, paths, basis.payload)
    record_environments(paths, basis)
    accepted = {**known.accepted, **basis.fingerprints}
    mixed = [*mixes(paths), *words]
    record(paths, digests, payload=payload.name, accepted=accepted, **{MIXED: mixed})
    return identity(paths), basis


def _with_its_variables(
    paths: RunPaths, plan: Plan, basis: TrialBasis, known: Identity
) -> Identity:
    """Take this session's variables for environments in which no trial has ended yet.

    A job of a queue begins with other variables than whoever submitted it, and that is no change.
    """
    ran = trial_folders.outcomes(paths)
    new: dict[str, Interpreter] = {}
    for name, now in basis.interpreters.items():
        of_before = _recorded(paths, name).get("variables")
        has_run = any(ran.get(cell.key) for cell in plan.cells if cell.environment == name)
        if isinstance(of_before, dict) and of_before != now.variables and not has_run:
            new[name] = replace(now, variables=of_before)
    if not new:
        return known
    interpreters = {**basis.interpreters, **new}
    before = of_payload(plan, interpreters, basis.payload, basis.own).fingerprints
    taken = {
        cell.key: basis.fingerprints[cell.key]
        for cell in plan.cells
        if cell.environment in new and before[cell.key] == known.accepted.get(cell.key)
    }
    record_environments(paths, replace(basis, interpreters={k: basis.interpreters[k] for k in new}))
    record(paths, {}, first={**known.first, **taken}, accepted={**known.accepted, **taken})
    return identity(paths)


def _what_changed(paths: RunPaths, basis: TrialBasis) -> list[str]:
    """Say in words what is not as it was when the run was made, or mixed last."""
    if paths.files.exists(paths.root / identity(paths).payload):
        files = trust.differing_files(paths, basis.payload)
        words = [f"the code: {files}"] if files else []
    else:
        words = ["the run's own code is gone"]
    words += _environment_changes(paths, basis)
    return words or ["an older bakeoff recorded too little to say what"]


def _environment_changes(paths: RunPaths, basis: TrialBasis) -> list[str]:
    both = ((_recorded(paths, name), now, name) for name, now in basis.interpreters.items())
    return list(dict.fromkeys(one for old, now, name in both for one in changes(name, old, now)))


def _indented(lines: Iterable[str]) -> str:
    return "".join(f"\n    {line}" for line in lines)


def _recorded(paths: RunPaths, name: str) -> dict[str, Any]:
    place = paths.environment(name)
    return paths.files.read_object(place) if paths.files.exists(place) else {}


def _next_payload(paths: RunPaths) -> Path:
    number = 2
    files = paths.files
    while files.exists(place := paths.payload.with_name(f"{paths.payload.name}.{number}")):
        number += 1
    return place
