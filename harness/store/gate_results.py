"""Store the equivalence gate's results for a run's cells, by the code that their trials ran.

The trials of a cell run the same code in the same environment, unless the run was resumed with
``--mix``: so results are kept by the fingerprint that trials carry, and of several the worst holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.errors import RunError
from harness.store.layout import RunPaths
from harness.store.records import (
    DIFFERS,
    EQUIVALENT,
    EXAMINATION_FAILED,
    IN_PART,
    NAMED,
    NO_NETWORK,
    NOT_CHECKED,
    NOT_RUN,
    NOTHING,
    CellRecord,
    Gate,
    RunRecord,
    TrialRecord,
)
from harness.store.seals import digest_of

VERSION = 3
"""1: one result, whatever the trials ran; 2: by the fingerprint of trials; 3: with a digest"""
SEALED = "found"
_DIGEST = "digest"
_ANY_FINGERPRINT = ""
"""In place of a fingerprint: a result of version 1."""

_WORST_FIRST = (DIFFERS, EXAMINATION_FAILED, NOT_CHECKED, IN_PART, NAMED, EQUIVALENT)
_REFUSED = (DIFFERS, EXAMINATION_FAILED)

SEALS = "seals"
"""In ``run.json``: that the results of its gate carry digests."""

_Results = Mapping[str, Mapping[str, Any]]


def store_result(paths: RunPaths, key: str, fingerprint: str, result: Mapping[str, Any]) -> None:
    """Store one cell's result for one fingerprint; a damaged file is replaced."""
    paths.files.make_folder(paths.gate)
    results = {**(_read(paths, key) or {}), fingerprint: dict(result)}
    paths.files.write_json(_file(paths, key), {"version": VERSION, **sealed(results)})


def sealed(found: Mapping[str, Any]) -> dict[str, Any]:
    """Put a digest beside what was found: a file that was changed by hand is then not believed."""
    return {SEALED: dict(found), _DIGEST: digest_of(found)}


def is_sealed(raw: Any) -> bool:
    """Whether a file holds what was once sealed."""
    is_whole = isinstance(raw, dict) and isinstance(raw.get(SEALED), dict)
    return is_whole and raw.get(_DIGEST) == digest_of(raw[SEALED])


def store_log(paths: RunPaths, key: str, text: str) -> Path:
    """Keep what the examination of a cell printed before it failed; give the file."""
    paths.files.make_folder(paths.gate)
    file = paths.gate / f"{key}.log"
    paths.files.write(file, text)
    return file


def checked_fingerprints(paths: RunPaths, key: str) -> frozenset[str]:
    """Give the fingerprints for which there is a result of a cell; a failure is none."""
    results = _read(paths, key) or {}
    return frozenset(one for one, found in results.items() if found["state"] != EXAMINATION_FAILED)


def fingerprints_by_cell(trials: Iterable[TrialRecord]) -> dict[tuple[str, str], set[str]]:
    """Give the fingerprints of trials that ended well, by run and cell: only those are ranked."""
    fingerprints: dict[tuple[str, str], set[str]] = {}
    for trial in trials:
        if trial.outcome.is_ok:
            cell = (trial.run, trial.outcome.cell_key)
            fingerprints.setdefault(cell, set()).add(trial.outcome.fingerprint)
    return fingerprints


def gate_of(run: RunRecord, cell: CellRecord, fingerprints: Collection[str]) -> Gate:
    """Combine the gate's results for every fingerprint that a cell's trials ran.

    The worst result holds. A fingerprint without a result makes the cell "not checked", unless
    another one already differs. Only workloads that train a network have anything to compare.
    """
    if cell.macs is None:
        return Gate(NOTHING, NO_NETWORK)
    file = _file(run.paths, cell.key)
    if not run.paths.files.exists(file):
        return Gate(NOT_CHECKED, NOT_RUN)
    stored = _read(run.paths, cell.key)
    if stored is None and is_edited(run.paths, cell.key):
        again = "`bakeoff resume` examines the cell anew"
        return Gate(NOT_CHECKED, f"{file.name} was changed by hand and is not believed; {again}")
    if not stored:
        return Gate(NOT_CHECKED, f"{file.name} is damaged; `bakeoff resume` writes it anew")
    results = _results_of(stored, fingerprints)
    known = [one for one in results if one is not None]
    known.sort(key=lambda one: _WORST_FIRST.index(one["state"]))
    if not known or (len(known) < len(results) and known[0]["state"] not in _REFUSED):
        return Gate(NOT_CHECKED, "the gate examined other code than some of its trials ran")
    state, detail = known[0]["state"], known[0]["detail"]
    alike = sum(one is not None and one["state"] == state for one in results)
    if alike < len(results):
        detail += f" (so for {alike} of {len(results)} states of the code that its trials ran)"
    return Gate(state, detail, tuple(known[0].get("not_shown") or ()))


def _results_of(stored: _Results, fingerprints: Collection[str]) -> list[Mapping[str, Any] | None]:
    """Give a result for each fingerprint, None where it is missing; without trials, all results.

    A result of version 1 names no fingerprint: it is taken for the only one without a result.
    """
    if not fingerprints:
        return list(stored.values())
    unnamed = (
        stored.get(_ANY_FINGERPRINT)
        if sum(one not in stored for one in fingerprints) == 1
        else None
    )
    return [stored.get(one, unnamed) for one in fingerprints]


def _read(paths: RunPaths, key: str) -> _Results | None:
    """Read a cell's results; None where they are absent or damaged."""
    try:
        raw = paths.files.read_object(_file(paths, key))
        if _is_changed(paths, raw):
            return None
        results = {_ANY_FINGERPRINT: raw} if raw["version"] == 1 else raw[SEALED]
        whole = all(
            one["state"] in _WORST_FIRST and isinstance(one["detail"], str)
            for one in results.values()
        )
    except (RunError, KeyError, TypeError, AttributeError):
        # Absent, cut short or of another program: treated as if the gate had not run.
        return None
    return results if whole else None


def _is_changed(paths: RunPaths, raw: Mapping[str, Any]) -> bool:
    """Whether a file is not as it was written; a run of an older bakeoff has no digests."""
    seals = paths.files.read_object(paths.run).get(SEALS) is True
    return not is_sealed(raw) and (seals or raw.get("version") not in (1, 2))


def is_edited(paths: RunPaths, key: str) -> bool:
    """Whether the results of a cell were changed by hand since they were written."""
    with suppress(RunError):
        return _is_changed(paths, paths.files.read_object(_file(paths, key)))
    return False


def _file(paths: RunPaths, key: str) -> Path:
    return paths.gate / f"{key}.json"
