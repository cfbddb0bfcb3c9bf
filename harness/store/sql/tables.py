"""Lay a Dataset's runs out as DuckDB tables; events stay in their files."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import DamagedFile
from harness.store import gate_results
from harness.store.contained import MOST_EVENTS, MOST_SAMPLES
from harness.store.records import RunRecord, TrialRecord
from harness.store.sql import schema
from harness.store.sql.queries import storable

if TYPE_CHECKING:
    import duckdb


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
    fill(connection, "runs", schema.RUNS, [_run(run) for run in runs])
    fill(
        connection,
        "cells",
        schema.CELLS,
        list(_cells(runs, gate_results.fingerprints_by_cell(trials))),
    )
    fill(connection, "trials", schema.TRIALS, [_trial(trial) for trial in trials])
    fill(connection, "ranks", schema.RANKS, [row for trial in trials for row in _ranks(trial)])
    fill(connection, "event_files", schema.EVENT_FILES, files)
    if files:
        name_files(connection, [str(row[0]) for row in files])
        connection.execute(f"CREATE VIEW events AS FROM {read_events(schema.EVENTS)}")
    else:
        fill(connection, "events", {**schema.EVENTS, "filename": "VARCHAR"}, [])
    connection.execute(schema.VIEWS)


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


def add_columns(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    keys: Mapping[str, str],
    columns: Mapping[str, str],
    rows: Sequence[Sequence[Any]],
) -> None:
    """Add columns to a table, to the rows that have the same keys; others are NULL there."""
    fill(connection, "added", {**keys, **columns}, rows)
    joined = ", ".join(keys)
    connection.execute(
        f"CREATE OR REPLACE TABLE {name} AS FROM {name} LEFT JOIN added USING ({joined})"
    )
    connection.execute("DROP TABLE added")


def openable(trial: TrialRecord, file: Path) -> str:
    """Name a file of a trial so that the database opens it and no other.

    It takes only Unicode, and a name with * ? or [ for a pattern of the names beside it.
    """
    name = str(file)
    if storable(name) == name and not has_magic(name):
        return name
    return f"/proc/self/fd/{_handle(trial.directory)}/{file.relative_to(trial.directory)}"


@cache
def _handle(folder: Path) -> int:
    """Open a folder for as long as this process lives."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)


def files_read(trials: Sequence[TrialRecord]) -> list[str]:
    """Name every file that the tables are read from, of samples also those not written yet.

    DuckDB allows what a link points to with the link: none is named.
    """
    events = [str(row[0]) for row in _files(trials)]
    tables = (openable(trial, table) for trial, table, wrong in _sample_tables(trials) if not wrong)
    return [*events, *tables]


def unread_tables(trials: Sequence[TrialRecord]) -> list[str]:
    """Say which sample tables are links or the like, and are not read."""
    return [f"{wrong} It is left out." for *_, wrong in _sample_tables(trials) if wrong]


def _sample_tables(trials: Sequence[TrialRecord]) -> Iterator[tuple[TrialRecord, Path, str]]:
    """Give the place of every node's table, written or not, and what is wrong with it."""
    for trial in trials:
        for node in sorted(set(trial.hosts.values())):
            table, wrong = trial.paths.sample_table(node), ""
            try:
                trial.paths.files.checked(table, MOST_SAMPLES)
            except FileNotFoundError:
                pass
            except DamagedFile as problem:
                wrong = str(problem)
            yield trial, table, wrong


def _files(trials: Sequence[TrialRecord]) -> Iterator[tuple[Any, ...]]:
    for trial in trials:
        for rank in trial.outcome.ranks:
            file = trial.paths.events(rank.rank)
            try:
                trial.paths.files.checked(file, MOST_EVENTS)
            except FileNotFoundError:
                continue
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
