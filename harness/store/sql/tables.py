"""Lay a Dataset's runs out as DuckDB tables; events stay in their files.

The tables that ``bakeoff sql`` offers; times are nanoseconds of the rank's monotonic clock,
``trial`` is a folder name such as trial-3:

    runs      run, title, study, directory, started_wall_ns, seed, platform, provenance
    cells     run, cell_key, label, workload, framework, environment, strategy, factors, unit,
              parameters, macs, epoch_samples, gate, gate_detail      what the gate said
    trials    run, cell_key, trial, block, attempt, outcome, reason, origin, fingerprint, mixed,
              marks, position, started_wall_ns, ended_wall_ns, clock_bound_s, directory
    ranks     run, cell_key, trial, rank, host, pid, exit_code, signal, cpu_s, max_rss_bytes,
              started_ns
    windows   run, cell_key, trial, block, attempt, rank, phase, first, steps, start_ns, end_ns,
              turn      the number of the turn that it is a part of, where its trial takes turns
    turns     run, cell_key, trial, block, attempt, rank, number, round, try, start_ns, end_ns,
              disturbed, foreign_cores      attempt is the trial's, try the turn's in its round
    units     run, cell_key, trial, block, attempt, rank, name, value      work per step
    values    run, cell_key, trial, block, attempt, rank, step, name, value
    phases    run, cell_key, trial, block, attempt, rank, phase, start_ns, end_ns      the first is
              start: the rank's container and interpreter, until it opens its framework
    facts     run, cell_key, trial, block, attempt, rank, name, value
    versions  run, cell_key, trial, block, attempt, rank, name, value
    samples   run, cell_key, trial, block, attempt, node, source, scope, channel, unit, kind, t_ns,
              half_width_ns, raw, value, gap       what the collector read; times as the events'
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.store import gate_results
from harness.store.records import RunRecord, TrialRecord
from harness.store.sql.queries import storable
from harness.worker.redaction.redact import HIDDEN
from harness.worker.redaction.shapes import SECRET_VARIABLE

if TYPE_CHECKING:
    import duckdb

NAMES = (
    "runs",
    "cells",
    "trials",
    "ranks",
    "windows",
    "turns",
    "units",
    "values",
    "phases",
    "facts",
    "versions",
    "samples",
)

# Always explicit: DuckDB would otherwise guess types from a sample of each file.
_EVENT: Mapping[str, str] = {
    "event": "VARCHAR",
    "phase": "VARCHAR",
    "name": "VARCHAR",
    "t": "BIGINT",
    "first": "BIGINT",
    "steps": "BIGINT",
    "start": "BIGINT",
    "end": "BIGINT",
    "step": "BIGINT",
    "turn": "BIGINT",
    "number": "BIGINT",
    "round": "BIGINT",
    "attempt": "BIGINT",
    "disturbed": "VARCHAR",
    "foreign_cores": "DOUBLE",
    "values": "MAP(VARCHAR, DOUBLE)",
    "units": "MAP(VARCHAR, DOUBLE)",
    "facts": "MAP(VARCHAR, JSON)",
    "versions": "MAP(VARCHAR, VARCHAR)",
}
_RUN = {
    "run": "VARCHAR",
    "title": "VARCHAR",
    "study": "VARCHAR",
    "directory": "VARCHAR",
    "started_wall_ns": "BIGINT",
    "seed": "BIGINT",
    "platform": "JSON",
    "provenance": "JSON",
}
_CELL = {
    "run": "VARCHAR",
    "cell_key": "VARCHAR",
    "label": "VARCHAR",
    "workload": "VARCHAR",
    "framework": "VARCHAR",
    "environment": "VARCHAR",
    "strategy": "VARCHAR",
    "factors": "JSON",
    "unit": "VARCHAR",
    "parameters": "BIGINT",
    "macs": "BIGINT",
    "epoch_samples": "BIGINT",
    "gate": "VARCHAR",
    "gate_detail": "VARCHAR",
}
_TRIAL = {
    "run": "VARCHAR",
    "cell_key": "VARCHAR",
    "trial": "VARCHAR",
    "block": "INTEGER",
    "attempt": "INTEGER",
    "outcome": "VARCHAR",
    "reason": "VARCHAR",
    "origin": "VARCHAR",
    "fingerprint": "VARCHAR",
    "mixed": "BOOLEAN",
    "marks": "VARCHAR[]",
    "position": "INTEGER",
    "started_wall_ns": "BIGINT",
    "ended_wall_ns": "BIGINT",
    "clock_bound_s": "DOUBLE",
    "directory": "VARCHAR",
}
_RANK = {
    "run": "VARCHAR",
    "cell_key": "VARCHAR",
    "trial": "VARCHAR",
    "rank": "INTEGER",
    "host": "VARCHAR",
    "pid": "BIGINT",
    "exit_code": "INTEGER",
    "signal": "INTEGER",
    "cpu_s": "DOUBLE",
    "max_rss_bytes": "BIGINT",
    "started_ns": "BIGINT",
}
_FILE = {
    "file": "VARCHAR",
    "run": "VARCHAR",
    "cell_key": "VARCHAR",
    "trial": "VARCHAR",
    "block": "INTEGER",
    "attempt": "INTEGER",
    "rank": "INTEGER",
}
_VIEWS = """
CREATE VIEW windows AS SELECT f.* EXCLUDE file, e.phase, e."first", e.steps,
    e."start" AS start_ns, e."end" AS end_ns, e.turn
    FROM events e JOIN event_files f ON f.file = e.filename WHERE e.event = 'window'
    AND e.phase IS NOT NULL AND e."first" IS NOT NULL AND e.steps IS NOT NULL
    AND e."start" IS NOT NULL AND e."end" IS NOT NULL;
CREATE VIEW turns AS SELECT f.* EXCLUDE file, e.number, e.round, e.attempt AS try,
    e."start" AS start_ns, e."end" AS end_ns, e.disturbed, e.foreign_cores
    FROM events e JOIN event_files f ON f.file = e.filename WHERE e.event = 'turn'
    AND e.number IS NOT NULL AND e.round IS NOT NULL AND e."start" IS NOT NULL;
CREATE VIEW phases AS SELECT f.* EXCLUDE file, e.name AS phase, e.t AS start_ns,
    lead(e.t) OVER (PARTITION BY e.filename ORDER BY e.t, e.event DESC) AS end_ns
    FROM events e JOIN event_files f ON f.file = e.filename
    WHERE e.event IN ('phase', 'finished') AND e.t IS NOT NULL QUALIFY e.event = 'phase'
    UNION ALL SELECT f.* EXCLUDE file, 'start', r.started_ns, min(e.t)
    FROM events e JOIN event_files f ON f.file = e.filename
    JOIN ranks r USING (run, cell_key, trial, rank)
    WHERE e.event = 'phase' AND r.started_ns IS NOT NULL GROUP BY ALL;
CREATE VIEW "values" AS SELECT * EXCLUDE entry, entry.key AS name, entry.value AS value FROM (
    SELECT f.* EXCLUDE file, e.step, unnest(map_entries(e."values")) AS entry
    FROM events e JOIN event_files f ON f.file = e.filename WHERE e.event = 'values');
"""
_PAIRS = """
CREATE VIEW {name} AS SELECT * EXCLUDE entry, entry.key AS name, {value} AS value FROM (
    SELECT f.* EXCLUDE file, unnest(map_entries(e.{name})) AS entry
    FROM events e JOIN event_files f ON f.file = e.filename WHERE e.event = '{name}');
"""
_SHOWN = (
    f"CASE WHEN regexp_matches(entry.key, '{SECRET_VARIABLE.pattern}', 'i') "
    "AND try_cast(entry.value AS DOUBLE) IS NULL THEN {hidden} ELSE entry.value END"
)
"""As of variables; a number is no secret."""


def read_events(columns: Mapping[str, str]) -> str:
    """Write the table function over the named files; a killed rank's torn last line is skipped."""
    typed = ", ".join(f"\"{name}\": '{kind}'" for name, kind in columns.items())
    return (
        "read_json(getvariable('event_files'), format = 'newline_delimited', "
        f"ignore_errors = true, filename = true, columns = {{{typed}}})"
    )


def lay_out(
    connection: duckdb.DuckDBPyConnection,
    runs: Sequence[RunRecord],
    trials: Sequence[TrialRecord],
) -> None:
    """Make every table of these runs and trials but the samples."""
    files = list(_files(trials))
    fill(connection, "runs", _RUN, [_run(run) for run in runs])
    fill(connection, "cells", _CELL, list(_cells(runs, gate_results.fingerprints_by_cell(trials))))
    fill(connection, "trials", _TRIAL, [_trial(trial) for trial in trials])
    fill(connection, "ranks", _RANK, [row for trial in trials for row in _ranks(trial)])
    fill(connection, "event_files", _FILE, files)
    if files:
        name_files(connection, [str(row[0]) for row in files])
        connection.execute(f"CREATE VIEW events AS FROM {read_events(_EVENT)}")
    else:
        fill(connection, "events", {**_EVENT, "filename": "VARCHAR"}, [])
    connection.execute(_VIEWS)
    for name, value in (
        ("units", "entry.value"),
        ("facts", _SHOWN.format(hidden=f"to_json('{HIDDEN}')")),
        ("versions", _SHOWN.format(hidden=f"'{HIDDEN}'")),
    ):
        connection.execute(_PAIRS.format(name=name, value=value))


def name_files(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> None:
    """Set the variable that ``read_events`` may name; paths never become part of SQL text."""
    connection.execute(
        "SET VARIABLE event_files = (SELECT list(file) FROM (SELECT unnest($1) AS file))",
        [list(files)],
    )


def fill(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    columns: Mapping[str, str],
    rows: Sequence[Sequence[Any]],
) -> None:
    """Create a table of these rows; column by column, as row by row is a hundred times slower."""
    declared = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
    connection.execute(f"CREATE TABLE {name} ({declared})")
    if rows:
        unnested = ", ".join(
            f"unnest(${index}::{kind}[])" for index, kind in enumerate(columns.values(), start=1)
        )
        values = [list(map(storable, column)) for column in zip(*rows, strict=True)]
        connection.execute(f"INSERT INTO {name} SELECT {unnested}", values)


def openable(trial: TrialRecord, file: Path) -> str:
    """Name a file of a trial so that the database can open it, which takes only Unicode."""
    name = str(file)
    if storable(name) == name:
        return name
    return f"/proc/self/fd/{_handle(trial.directory)}/{file.relative_to(trial.directory)}"


@cache
def _handle(folder: Path) -> int:
    """Open a folder for as long as this process lives."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)


def files_read(trials: Sequence[TrialRecord]) -> list[str]:
    """Name every file that the tables are read from, of samples also those not written yet."""
    events = [str(row[0]) for row in _files(trials)]
    tables = (
        openable(trial, trial.paths.sample_table(node))
        for trial in trials
        for node in sorted(set(trial.hosts.values()))
    )
    return [*events, *tables]


def _files(trials: Sequence[TrialRecord]) -> Iterator[tuple[Any, ...]]:
    for trial in trials:
        for rank in trial.outcome.ranks:
            file = trial.paths.events(rank.rank)
            if trial.paths.files.exists(file):
                name = trial.name
                where = (trial.run, trial.outcome.cell_key, str(name), name.block, name.attempt)
                yield (openable(trial, file), *where, rank.rank)


def _run(run: RunRecord) -> tuple[Any, ...]:
    info = run.info
    claimed, observed = json.dumps(info.platform), json.dumps(info.provenance)
    start = (info.name, info.title, run.study, info.directory, info.started_wall_ns, info.seed)
    return (*start, claimed, observed)


def _cells(
    runs: Sequence[RunRecord], ran: Mapping[tuple[str, str], Collection[str]]
) -> Iterator[tuple[Any, ...]]:
    for run, cell in ((one, cell) for one in runs for cell in one.cells):
        gate = gate_results.gate_of(run, cell, ran.get((run.info.name, cell.key), ()))
        yield (
            run.info.name,
            cell.key,
            cell.label,
            cell.workload,
            cell.framework,
            cell.environment,
            cell.strategy,
            json.dumps(cell.factors),
            cell.unit,
            cell.parameters,
            cell.macs,
            cell.epoch_samples,
            gate.state,
            gate.detail,
        )


def _trial(trial: TrialRecord) -> tuple[Any, ...]:
    outcome = trial.outcome
    return (
        trial.run,
        outcome.cell_key,
        str(trial.name),
        trial.name.block,
        trial.name.attempt,
        str(outcome.ended),
        outcome.reason,
        outcome.origin,
        outcome.fingerprint,
        outcome.mixed,
        list(outcome.marks),
        outcome.position,
        outcome.started_wall_ns,
        outcome.ended_wall_ns,
        trial.clock_bound_s,
        str(trial.directory),
    )


def _ranks(trial: TrialRecord) -> Iterator[tuple[Any, ...]]:
    for rank in trial.outcome.ranks:
        yield (
            trial.run,
            trial.outcome.cell_key,
            str(trial.name),
            rank.rank,
            rank.host,
            rank.pid,
            rank.exit_code,
            rank.signal,
            rank.cpu_s,
            rank.max_rss_bytes,
            rank.started_ns,
        )
