"""This file brings what the ranks of many trials said into arrays, some hundred files at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.store import event_lines, tables
from harness.store.records import TrialRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

TRIALS_AT_ONCE = 512
"""Bounds memory: this many trials of a thousand windows are some 30 MB."""

_KINDS = 5
_MEASURE, _WARM_UP, _UNITS, _VERSIONS, _FACTS = range(_KINDS)
_QUERY = """
SELECT f.id, CASE e.event WHEN 'window' THEN (CASE e.phase WHEN 'measure' THEN 0 ELSE 1 END)
        WHEN 'units' THEN 2 WHEN 'versions' THEN 3 ELSE 4 END::TINYINT AS kind,
    e.steps, e."start", e."end", coalesce(e.units, e.versions, e.facts) AS said
FROM {events} e JOIN event_ids f ON f.file = e.filename
WHERE e.event IN ('window', 'units', 'versions', 'facts')
"""
_COLUMNS = {
    # units, versions and facts stay text: json reads them once per file
    "event": "VARCHAR",
    "phase": "VARCHAR",
    "steps": "BIGINT",
    "start": "BIGINT",
    "end": "BIGINT",
    "units": "VARCHAR",
    "versions": "VARCHAR",
    "facts": "VARCHAR",
}


@dataclass(frozen=True)
class Stream:
    """What one rank of one trial said, as far as statistics need it."""

    rank: int
    steps: Integers
    """Steps in each measured window, in order of time."""
    start_ns: Integers
    """When each began, on the clock of the rank's node."""
    elapsed_ns: Integers
    warm_up_ns: Integers
    """Time of one step in each warm-up window, in order."""
    units: Mapping[str, float]
    versions: Mapping[str, str]
    facts: Mapping[str, Any]


def read_streams(
    trials: Sequence[TrialRecord],
) -> Iterator[tuple[TrialRecord, tuple[Stream, ...]]]:
    """Read the ranks of each trial that left an event file, in the order of the trials."""
    places = (Path(tables.event_file(trial, rank.rank)) for trial in trials for rank in trial.ranks)
    connection = None if event_lines.is_small(list(places)) else tables.connect(len(trials))
    for first in range(0, len(trials), TRIALS_AT_ONCE):
        yield from _read(connection, trials[first : first + TRIALS_AT_ONCE])


def _read(connection: Any, trials: Sequence[TrialRecord]) -> Iterator[Any]:
    import numpy as np

    places = [(trial, rank.rank) for trial in trials for rank in trial.ranks]
    files = [tables.event_file(trial, rank) for trial, rank in places]
    present = [index for index, file in enumerate(files) if Path(file).exists()]
    spoken: dict[int, list[Stream]] = {id(trial): [] for trial in trials}
    if present:
        numbered = {index: Path(files[index]) for index in present}
        rows = _queried(connection, numbered) if connection else event_lines.read_lines(numbered)
        ids, kinds, said = rows["id"], rows["kind"], rows["said"]
        steps, start, end = rows["steps"], rows["start"], rows["end"]
        groups = ids.astype(np.int64) * _KINDS + kinds
        # lines arrive in the order of their files, which a stable sort turns into groups cheaply
        order = np.argsort(groups, kind="stable")
        ordered = groups[order]
        if np.any((np.diff(start[order]) < 0) & (np.diff(ordered) == 0)):
            order = np.lexsort((start, groups))
        steps, begun, elapsed = steps[order], start[order], (end - start)[order]
        bounds = np.searchsorted(ordered, np.arange(len(files) * _KINDS + 1))
        for index in present:
            at = [int(bound) for bound in bounds[index * _KINDS :][: _KINDS + 1]]
            measured = slice(at[_MEASURE], at[_MEASURE + 1])
            warm = slice(at[_WARM_UP], at[_WARM_UP + 1])
            told = [
                json.loads(said[order[at[kind]]]) if at[kind] < at[kind + 1] else {}
                for kind in (_UNITS, _VERSIONS, _FACTS)
            ]
            trial, rank = places[index]
            spoken[id(trial)].append(
                Stream(
                    rank,
                    steps[measured],
                    begun[measured],
                    elapsed[measured],
                    elapsed[warm] // np.maximum(steps[warm], 1),
                    *told,
                )
            )
    for trial in trials:
        yield trial, tuple(spoken[id(trial)])


def _queried(connection: Any, files: Mapping[int, Path]) -> Mapping[str, Any]:
    import numpy as np

    connection.execute("DROP TABLE IF EXISTS event_ids")
    rows = [(str(file), number) for number, file in files.items()]
    tables.fill(connection, "event_ids", {"file": "VARCHAR", "id": "INTEGER"}, rows)
    tables.name_files(connection, [str(file) for file in files.values()])
    told = connection.execute(_QUERY.format(events=tables.read_events(_COLUMNS))).fetchnumpy()
    return {name: np.ma.getdata(column) for name, column in told.items()}
