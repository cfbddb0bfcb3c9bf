"""The Dataset: the complete trials of one or many runs, read where they lie."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import RunError, UsageError
from harness.store.record_readers.run_reader import read_run
from harness.store.record_readers.trial_reader import read_trials
from harness.store.records import RunRecord, TrialRecord
from harness.store.samples import sample_parquet
from harness.store.sql import schema, tables
from harness.store.sql.queries import QueryResult, answer, connect, interruptible, seal
from harness.worker.redaction.redact import redact_text

if TYPE_CHECKING:
    import duckdb

_ASKS_FOR_EVENTS = re.compile(
    r"\b(windows|epochs|checkpoints|turns|phases|units|facts|versions)\b", re.IGNORECASE
)
_ASKS_FOR_SAMPLES = re.compile(r"\bsamples\b", re.IGNORECASE)


class Dataset:
    """The complete trials of some runs: the measured ones, unless origins are named.

    Of runs that are all simulated it gives the simulated ones; both kinds together are refused.
    """

    def __init__(self, paths: Sequence[Path], origins: Sequence[str] = ()) -> None:
        if not paths:
            raise RunError("no run was named; `bakeoff list runs` shows what there is")
        self.runs, skipped = _readable(paths)
        self.origins = tuple(origins) or (_origin(self.runs),)
        names = [run.info.name for run in self.runs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise RunError(
                f"two runs are called {', '.join(twice)}: their trials could not be told apart. "
                "Rename one of the directories."
            )
        trials_by_run = [read_trials(run) for run in self.runs]
        complete = [trial for one in trials_by_run for trial in one.records]
        damaged = [text for run in self.runs for text in run.damaged]
        damaged += [text for one in trials_by_run for text in one.damaged]
        self.trials: tuple[TrialRecord, ...] = tuple(
            trial for trial in complete if trial.outcome.origin in self.origins
        )
        damaged += tables.unread_tables(self.trials)
        self.warnings = tuple(map(redact_text, (*skipped, *damaged)))
        """What could not be read, and was left out."""
        self.left_out = len(complete) - len(self.trials)
        """Complete trials of other origins."""
        self.others: dict[tuple[str, str], str] = {
            (trial.run, trial.outcome.cell_key): trial.outcome.origin
            for trial in complete
            if trial.outcome.origin not in self.origins
        }
        """By run and cell, the origin of a trial that was left out."""
        self._has_samples = False

    def sql(self, text: str) -> QueryResult:
        """Answer one SELECT over the tables of ``sql/schema.py``; nothing else is read or done."""
        if _ASKS_FOR_SAMPLES.search(text):
            self._attach_samples()
        connection = self._connection
        return interruptible(connection, lambda: self._answer(connection, text))

    def add_columns(
        self,
        table: str,
        keys: Mapping[str, str],
        columns: Mapping[str, str],
        rows: Sequence[Sequence[Any]],
    ) -> None:
        """Add columns to a table, to the rows that have the same keys; others are NULL there."""
        connection = self._connection
        interruptible(
            connection, lambda: tables.add_columns(connection, table, keys, columns, rows)
        )

    def damaged_lines(self, text: str) -> tuple[str, ...]:
        """Name the damaged lines of the events that a query reads; it is answered without them."""
        if not _ASKS_FOR_EVENTS.search(text):
            return ()
        from harness.store.events.rank_streams import read_streams

        streams = (stream for _, some in read_streams(self.trials) for stream in some)
        return tuple(line for stream in streams for line in stream.damaged)

    def _answer(self, connection: duckdb.DuckDBPyConnection, text: str) -> QueryResult:
        import duckdb

        try:
            return answer(connection, text)
        except duckdb.OutOfMemoryException:
            raise UsageError(
                "This query needs more memory than there is. Ask for less of it: fewer columns, "
                "a narrower WHERE, or an aggregate."
            ) from None
        except duckdb.Error as fault:
            raise UsageError(
                f"{redact_text(str(fault))}\n{_columns_of_tables(connection)}"
            ) from None

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        connection = connect(len(self.trials))
        interruptible(connection, lambda: self._lay_out(connection))
        return connection

    def _lay_out(self, connection: duckdb.DuckDBPyConnection) -> None:
        tables.lay_out(connection, self.runs, self.trials)
        sample_parquet.declare(connection)
        seal(connection, tables.files_read(self.trials))

    def _attach_samples(self) -> None:
        """Load the samples at the first query that names them: they are large."""
        if not self._has_samples:
            self._has_samples = True
            sample_parquet.attach(self._connection, self.trials)


def _columns_of_tables(connection: duckdb.DuckDBPyConnection) -> str:
    lines = ["The tables and their columns:"]
    for name in schema.NAMES:
        described = connection.execute(f'DESCRIBE "{name}"').fetchall()
        lines.append(f"    {name:9} {', '.join(str(row[0]) for row in described)}")
    return "\n".join(lines)


def _origin(runs: Sequence[RunRecord]) -> str:
    """Choose the default origin: measured, or simulated where all runs are; refuse a mixture."""
    simulated = [run.info.name for run in runs if run.info.is_simulated]
    if simulated and len(simulated) < len(runs):
        raise RunError(
            f"{', '.join(simulated)}: simulated, and never shown beside what was measured. "
            "Name simulated and measured runs apart."
        )
    return "simulated" if simulated else "measured"


def _readable(paths: Sequence[Path]) -> tuple[tuple[RunRecord, ...], tuple[str, ...]]:
    """Read the runs; of several, one that cannot be read does not hide the others."""
    runs: list[RunRecord] = []
    problems: list[str] = []
    for path in paths:
        try:
            runs.append(read_run(path))
        except RunError as problem:
            if len(paths) == 1:
                raise
            problems.append(f"{str(problem).rstrip('.')}. The run is left out.")
    if not runs:
        raise RunError("\n".join(problems))
    return tuple(runs), tuple(problems)
