"""Keep samples as Parquet beside the raw files, and offer them as a table.

Parquet is a cache: it can be thrown away, and is written anew where it is missing. ``value`` is in
the channel's unit, counters as they stood; ``gap`` says why there is none.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import DamagedFile, RunError
from harness.store.contained import MOST_SAMPLES, Contained
from harness.store.record_readers.trial_reader import read_trials
from harness.store.records import RunRecord, TrialRecord
from harness.store.samples import samples_format
from harness.store.samples.recording import Recording, read_recording
from harness.store.sql import tables
from harness.store.sql.queries import connect, interruptible

if TYPE_CHECKING:
    import duckdb

_MAGIC = b"PAR1"
_PLACE: Mapping[str, str] = {
    "run": "VARCHAR",
    "cell_key": "VARCHAR",
    "trial": "VARCHAR",
    "block": "BIGINT",
    "attempt": "BIGINT",
}
_READ: Mapping[str, str] = {
    "node": "VARCHAR",
    "source": "VARCHAR",
    "scope": "VARCHAR",
    "channel": "VARCHAR",
    "unit": "VARCHAR",
    "kind": "VARCHAR",
    "t_ns": "BIGINT",
    "half_width_ns": "BIGINT",
    "raw": "BIGINT",
    "value": "DOUBLE",
    "gap": "VARCHAR",
}
_CHANNEL = {"id": "BIGINT", "scale": "DOUBLE", **{name: _READ[name] for name in list(_READ)[:6]}}
_TABLE = """
SELECT c.node, c.source, c.scope, c.channel, c.unit, c.kind, r.t_ns, r.half_width_ns, r.raw,
    CASE WHEN g.raw IS NULL THEN r.raw * c.scale END AS value, g.gap
FROM readings r JOIN channels c USING (id) LEFT JOIN gaps g ON r.raw = g.raw
ORDER BY r.id, r.t_ns
"""


def write_missing(record: TrialRecord) -> list[Path]:
    """Write each node's samples as Parquet where that is missing; give the files."""
    paths, files = record.paths, record.paths.files
    tables = []
    for node in sorted(set(record.hosts.values())):
        table = paths.sample_table(node)
        if not _is_whole(files, table):
            recording = read_recording(paths.samples(node), files)
            if recording is None:
                continue
            files.write(table, as_parquet(recording, node))
        tables.append(files.checked(table, MOST_SAMPLES))
    return tables


def _is_whole(files: Contained, table: Path) -> bool:
    """Tell a table from what is none, which is written anew."""
    try:
        ends = (files.read_begin(table, len(_MAGIC)), files.read_end(table, len(_MAGIC)))
        return ends == (_MAGIC, _MAGIC) and bool(files.checked(table, MOST_SAMPLES))
    except (FileNotFoundError, DamagedFile):
        return False


def write_missing_of_run(run: RunRecord) -> None:
    """Write the Parquet of every trial of a run: at a session's end, when no trial is delayed."""
    for record in read_trials(run).records:
        write_missing(record)


def as_parquet(recording: Recording, node: str) -> bytes:
    """Give one recording as a table."""
    connection = connect(1)
    with tempfile.TemporaryDirectory(prefix="bakeoff-") as folder:
        made = Path(folder) / "samples.parquet"
        interruptible(connection, lambda: _write(connection, recording, node, made))
        return made.read_bytes()


def _write(
    connection: duckdb.DuckDBPyConnection, recording: Recording, node: str, made: Path
) -> None:
    _load(connection, recording, node)
    written = f"COPY ({_TABLE}) TO $path (FORMAT parquet, COMPRESSION zstd)"
    connection.execute(written, {"path": str(made)})


def _load(connection: duckdb.DuckDBPyConnection, recording: Recording, node: str) -> None:
    """Fill a database with one recording, of which ``_TABLE`` makes a table."""
    import numpy as np

    series = [one for one in recording.series if len(one.raw)]
    channels = [
        (
            at,
            one.channel.scale,
            node,
            one.source,
            one.channel.scope,
            one.channel.name,
            one.channel.unit,
            one.channel.kind,
        )
        for at, one in enumerate(series)
    ]
    tables.fill(connection, "channels", _CHANNEL, channels)
    tables.fill(
        connection, "gaps", {"raw": "BIGINT", "gap": "VARCHAR"}, list(samples_format.GAPS.items())
    )
    empty = [np.zeros(0, dtype=np.int64)]
    connection.register(
        "readings",
        {
            "id": np.repeat(np.arange(len(series)), [len(one.raw) for one in series]),
            "t_ns": np.concatenate([one.times_ns for one in series] or empty),
            "half_width_ns": np.concatenate(
                [(one.after_ns - one.before_ns + 1) // 2 for one in series] or empty
            ),
            "raw": np.concatenate([one.raw for one in series] or empty),
        },
    )


def attach(connection: duckdb.DuckDBPyConnection, trials: Sequence[TrialRecord]) -> None:
    """Make the view ``samples`` of all trials' Parquet, written first where it is missing.

    Parquet that cannot be written, as on a file system that is read-only, or be read, is a cache
    that is done without.
    """
    import duckdb

    files: list[tuple[Any, ...]] = []
    unwritten: list[TrialRecord] = []
    for trial in trials:
        try:
            there = write_missing(trial)
        except RunError:
            unwritten.append(trial)
        else:
            files += [(tables.openable(trial, file), *_place(trial)) for file in there]
    if not files and not unwritten:
        return
    rows = [row for trial in unwritten for row in _rows(trial)]
    try:
        interruptible(connection, lambda: _declare_over(connection, files, rows))
    except duckdb.Error:
        rows = [row for trial in trials for row in _rows(trial)]
        interruptible(connection, lambda: _declare_over(connection, [], rows))


def _declare_over(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[tuple[Any, ...]],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    for name in ("samples", "sample_files", "sample_rows"):
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    tables.fill(connection, "sample_rows", {**_PLACE, **_READ}, rows)
    from_files = ""
    if files:
        tables.fill(connection, "sample_files", {"file": "VARCHAR", **_PLACE}, files)
        connection.execute(
            "SET VARIABLE sample_files = (SELECT list(file) FROM (SELECT unnest($1) AS file))",
            [[str(row[0]) for row in files]],
        )
        from_files = (
            f"SELECT f.* EXCLUDE file, {', '.join(f's.{n}' for n in _READ)} "  # noqa: S608  column names from the table above
            "FROM read_parquet(getvariable('sample_files'), filename = true) s "
            "JOIN sample_files f ON f.file = s.filename UNION ALL "
        )
    connection.execute(f"CREATE VIEW samples AS {from_files} SELECT * FROM sample_rows")  # noqa: S608  as above


def _place(trial: TrialRecord) -> tuple[Any, ...]:
    name = trial.name
    return (trial.run, trial.outcome.cell_key, str(name), name.block, name.attempt)


def _rows(trial: TrialRecord) -> Iterator[tuple[Any, ...]]:
    """Give the samples of a trial without writing them."""
    for node in sorted(set(trial.hosts.values())):
        recording = read_recording(trial.paths.samples(node), trial.paths.files)
        if recording is not None:
            for row in _read(recording, node):
                yield (*_place(trial), *row)


def _read(recording: Recording, node: str) -> list[tuple[Any, ...]]:
    connection = connect(1)

    def read() -> list[tuple[Any, ...]]:
        _load(connection, recording, node)
        return connection.execute(_TABLE).fetchall()

    return interruptible(connection, read)


def declare(connection: duckdb.DuckDBPyConnection) -> None:
    """Make an empty table of the same columns, for a query that asks for no samples."""
    tables.fill(connection, "samples", {**_PLACE, **_READ}, [])
