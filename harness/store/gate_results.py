"""Keep what the equivalence gate said of a run's cells, by what their trials ran.

The trials of a cell run the same code in the same environment, unless somebody resumed with
``--mix``: so results are kept by the fingerprint that trials carry, and of several the worst holds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.store.files import explained, write_json
from harness.store.layout import RunPaths
from harness.store.records import CellRecord, Gate, RunRecord, TrialRecord

VERSION = 2  # 1: one result, whatever the trials ran; 2: by the fingerprint of trials
_WHATEVER = ""
"""In place of a fingerprint: a result of version 1."""

DIFFERS, NOT_CHECKED = "differs", "not checked"
_WORST_FIRST = (DIFFERS, NOT_CHECKED, "named difference", "equivalent")

_Found = Mapping[str, Mapping[str, Any]]


def keep(paths: RunPaths, key: str, fingerprint: str, result: Mapping[str, Any]) -> None:
    """Keep what was found of a cell whose trials carry a fingerprint; what is damaged goes."""
    with explained(paths.gate):
        paths.gate.mkdir(exist_ok=True)
    found = {**(_read(_file(paths, key)) or {}), fingerprint: dict(result)}
    write_json(_file(paths, key), {"version": VERSION, "found": found})


def proved(paths: RunPaths, key: str) -> frozenset[str]:
    """Give the fingerprints for which there is a result of a cell."""
    return frozenset(_read(_file(paths, key)) or {})


def ran(trials: Iterable[TrialRecord]) -> dict[tuple[str, str], set[str]]:
    """Give the fingerprints of what ended well, by run and cell: only that can be ranked."""
    found: dict[tuple[str, str], set[str]] = {}
    for trial in trials:
        if trial.outcome.is_ok:
            cell = (trial.run, trial.outcome.cell_key)
            found.setdefault(cell, set()).add(trial.outcome.fingerprint)
    return found


def gate_of(run: RunRecord, cell: CellRecord, seen: Collection[str]) -> Gate:
    """Say what the gate found of all that a cell's trials ran, by their fingerprints.

    Only what trains a network has to equal anything.
    """
    if cell.macs is None:
        return Gate("nothing to check", "no network is trained, so there is nothing to compare")
    file = _file(run.paths, cell.key)
    if not file.is_file():
        return Gate(NOT_CHECKED, "the equivalence gate was not run for this cell")
    found = _read(file)
    if not found:
        return Gate(NOT_CHECKED, f"{file.name} is damaged; `bakeoff resume` writes it anew")
    results = _of(found, seen)
    known = [one for one in results if one is not None]
    known.sort(key=lambda one: _WORST_FIRST.index(one["state"]))
    if not known or (len(known) < len(results) and known[0]["state"] != DIFFERS):
        return Gate(NOT_CHECKED, "the gate examined other code than some of its trials ran")
    state, detail = known[0]["state"], known[0]["detail"]
    alike = sum(one is not None and one["state"] == state for one in results)
    if alike < len(results):
        detail += f" (so for {alike} of {len(results)} states of the code that its trials ran)"
    return Gate(state, detail)


def _of(found: _Found, seen: Collection[str]) -> list[Mapping[str, Any] | None]:
    """Give a result for each fingerprint; without trials, all that there are."""
    if not seen:
        return list(found.values())
    whatever = found.get(_WHATEVER) if sum(one not in found for one in seen) == 1 else None
    return [found.get(one, whatever) for one in seen]


def _read(file: Path) -> _Found | None:
    """Read a cell's results; None where they are absent or damaged."""
    try:
        raw = json.loads(file.read_bytes())
        found = {_WHATEVER: raw} if raw["version"] == 1 else raw["found"]
        whole = all(
            one["state"] in _WORST_FIRST and isinstance(one["detail"], str)
            for one in found.values()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # Cut short, foreign or not there: as if the gate had never written it.
        return None
    return found if whole else None


def _file(paths: RunPaths, key: str) -> Path:
    return paths.gate / f"{key}.json"
