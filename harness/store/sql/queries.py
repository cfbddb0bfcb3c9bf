"""Answer queries over a database in memory that can read named files and nothing else.

``EXPLAIN ANALYZE COPY`` writes, table functions read any file, and DuckDB fetches extensions: only
what its own parser calls one SELECT is answered, after ``seal`` has taken the rest away.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from harness.errors import UsageError
from harness.worker.redaction.redact import redact_values

if TYPE_CHECKING:
    import duckdb

_ROWS_AT_ONCE = 10_000
_NOTICED_S = 0.1
T = TypeVar("T")

_WITHOUT_TEXT = {"BIGINT", "INTEGER", "DOUBLE", "BOOLEAN", "HUGEINT", "UBIGINT"}
_PLACES = {"run", "cell_key", "trial", "directory"}
_ZONED = ("WITH TIME ZONE", "TIMESTAMPTZ")


@dataclass(frozen=True)
class QueryResult:
    """The answer to a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def connect(trials: int) -> duckdb.DuckDBPyConnection:
    """Open an empty database in memory, with more than one thread only where there is work.

    It loads nothing, takes no variable of a program for a table, and writes nothing to a disk.
    """
    import duckdb

    return duckdb.connect(
        config={
            "threads": 1 if trials < 1000 else os.cpu_count() or 1,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            "temp_directory": "",
        }
    )


def seal(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> None:
    """Let a database read these files and no other, for good."""
    named = ", ".join(map(_quoted, files))
    connection.execute(f"SET allowed_paths = [{named}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def answer(connection: duckdb.DuckDBPyConnection, text: str) -> QueryResult:
    """Answer one SELECT; refuse every other statement."""
    text = str(storable(text))  # as names of runs are stored
    statements = connection.extract_statements(text)
    if [statement.type.name for statement in statements] != ["SELECT"]:
        raise UsageError(
            "sql answers one SELECT at a time, and changes nothing: no other statement is run."
        )
    # What DuckDB calls a SELECT may begin with `WITH x AS (DELETE …)`.
    connection.execute("BEGIN TRANSACTION READ ONLY")
    try:
        return _answered(connection, text, statements[0])
    finally:
        connection.execute("ROLLBACK")


def _answered(
    connection: duckdb.DuckDBPyConnection, text: str, statement: duckdb.Statement
) -> QueryResult:
    connection.execute(statement)
    columns = [(str(name), str(kind)) for name, kind, *_ in connection.description or ()]
    names = tuple(name for name, _ in columns)
    if any(_is_zoned(kind) for _, kind in columns):
        # Python has no type for them without a further package: they are given as DuckDB's text.
        shown = (f"#{n}" + "::VARCHAR" * _is_zoned(kind) for n, (_, kind) in enumerate(columns, 1))
        connection.execute(f"SELECT {', '.join(shown)} FROM query({_quoted(text)})")  # noqa: S608  the SELECT that was just answered
    rows: list[tuple[Any, ...]] = []
    are_left = [kind in _WITHOUT_TEXT or name in _PLACES for name, kind in columns]
    while some := connection.fetchmany(_ROWS_AT_ONCE):
        rows += some if all(are_left) else (_row_shown(row, are_left) for row in some)
    return QueryResult(names, tuple(rows))


def _row_shown(row: tuple[Any, ...], are_left: Sequence[bool]) -> tuple[Any, ...]:
    """Hide the secrets in a row, but for the columns without text or by which others find files."""
    return tuple(
        value if is_left else _shown(value) for value, is_left in zip(row, are_left, strict=True)
    )


def _shown(value: Any) -> Any:
    """Hide the secrets in a value; in JSON also by the names that values have there."""
    if type(value) is str and value[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            held = json.loads(value)
            shown = redact_values(held)
            return value if shown is held else json.dumps(shown)
    return redact_values(value)


def storable(value: Any) -> Any:
    """Give a value as a database can hold it: paths may hold what is no Unicode."""
    if isinstance(value, str) and not value.isascii():
        return value.encode(errors="backslashreplace").decode()
    return value


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _is_zoned(kind: str) -> bool:
    return any(word in kind for word in _ZONED)


def interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], T]) -> T:
    """Do a database's work so that Ctrl-C and SIGTERM end it as they end any other code.

    In the main thread DuckDB would answer both by an error of its own. So the work is done in
    another one, and what a signal's handler raises here is raised after that has stopped.
    """
    asked: Future[T] = Future()
    is_given_up = threading.Event()

    def carry_out() -> None:
        try:
            if is_given_up.is_set():
                asked.cancel()
            else:
                asked.set_result(work())
        except BaseException as fault:  # noqa: BLE001  raised again in the thread that asked
            asked.set_exception(fault)

    thread = threading.Thread(target=carry_out, daemon=True)
    try:
        thread.start()
        while not wait([asked], timeout=_NOTICED_S).done:
            pass  # a signal that arrives just before a wait does not end that one
    except BaseException:
        while True:
            try:
                is_given_up.set()
                while thread.ident is not None and not asked.done():
                    connection.interrupt()  # lost where the database does nothing just then
                    wait([asked], timeout=_NOTICED_S)
                break
            except (KeyboardInterrupt, SystemExit):
                continue  # a second signal must not leave the thread behind: that aborts us
        raise
    return asked.result()
