"""A query reads the tables of the runs named: it writes nothing, and opens no other file."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName
from harness.store.sql.queries import connect, interruptible
from tests.runs import Behaviour, RecordedCell, write_run

ENDLESS = "select count(*) from range(1000000) a, range(1000000) b where a.range * b.range % 7 = 3"
CELL = RecordedCell(behaviour=Behaviour(windows=5, warmup=2))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path, [CELL])


@pytest.mark.parametrize(
    "query",
    [
        "explain analyze copy (select 1) to '{out}'",
        "explain select 1",
        "copy (select 1) to '{out}'",
        "copy trials to '{out}'",
        "export database '{out}'",
        "attach '{out}'",
        "install httpfs",
        "force install httpfs from 'http://127.0.0.1:9'",
        "load httpfs",
        "pragma version",
        "pragma enable_profiling",
        "set threads = 2",
        "reset threads",
        "set enable_external_access = true",
        "call enable_logging()",
        "create table mine as select 1",
        "create view mine as select 1",
        "prepare p as select 1",
        "drop view windows",
        "delete from trials",
        "select 1; copy trials to '{out}'",
        "select 1; select 2",
        "vacuum",
        "checkpoint",
        "use memory",
        "",
        "-- nothing",
    ],
)
def test_what_is_not_one_select_is_refused(run: Path, tmp_path: Path, query: str) -> None:
    out = tmp_path / "out"
    with pytest.raises(UsageError, match="one SELECT at a time"):
        Dataset([run]).sql(query.format(out=out))
    assert not out.exists()


@pytest.mark.parametrize(
    "source",
    [
        "read_text('/etc/passwd')",
        "read_csv('/etc/passwd')",
        "read_blob('/etc/passwd')",
        "read_json('/etc/passwd')",
        "read_parquet('/etc/passwd')",
        "parquet_metadata('/etc/passwd')",
        "sniff_csv('/etc/passwd')",
        "glob('/etc/*')",
        "glob('{run}/*')",
        "'/etc/passwd'",
        "'{run}/plan.json'",
        "read_text('{run}/provenance.json')",
        "read_text('{run}/../{name}/provenance.json')",
        "read_csv('http://127.0.0.1:9/x.csv')",
        "read_csv('s3://bucket/x.csv')",
        "query('copy (select 1) to ''{out}''')",
        "enable_logging(storage = 'file', storage_path = '{out}')",
        "read_duckdb('{out}')",
        "found",
    ],
)
def test_no_function_reaches_a_file_or_a_variable(run: Path, tmp_path: Path, source: str) -> None:
    found, out = [("secret",)], tmp_path / "out"  # DuckDB would take a caller's list for a table
    with pytest.raises(UsageError):
        Dataset([run]).sql(f"select * from {source.format(run=run, name=run.name, out=out)}")
    assert found
    assert not out.exists()


def test_a_path_of_the_run_is_no_way_out_of_it(run: Path) -> None:
    events = RunPaths(run).trial(CELL.key, TrialName(1)).events(0)
    outside = f"{events.parent}/../../../../../../../../etc/passwd"
    with pytest.raises(UsageError, match="Permission Error"):
        Dataset([run]).sql(f"select * from read_text('{outside}')")


@pytest.mark.parametrize("name", ["a[b]", "a*", "a?"])
def test_the_name_of_a_run_is_no_pattern_of_others(run: Path, name: str) -> None:
    asked = "select count(*), (select count(*) from samples) from windows"
    wanted = Dataset([run]).sql(asked).rows
    sent, beside = run.rename(run.with_name(name)), run.with_name("ab")
    shutil.copytree(sent, beside)
    assert Dataset([sent]).sql(asked).rows == wanted
    ((windows, _),) = Dataset([sent, beside]).sql(asked).rows
    assert windows == 2 * wanted[0][0]


@pytest.mark.parametrize(
    "change",
    ["delete from trials", "update trials set run = 'x'", "insert into trials from trials"],
)
def test_a_change_within_a_select_is_refused(run: Path, change: str) -> None:
    dataset = Dataset([run])
    before = dataset.sql("from trials").rows
    assert before
    with pytest.raises(UsageError, match="read-only"):
        dataset.sql(f"with x as ({change} returning *) from x")
    assert dataset.sql("from trials").rows == before


def test_tables_answer_after_a_query_was_refused(run: Path) -> None:
    dataset = Dataset([run])
    with pytest.raises(UsageError):
        dataset.sql("from read_text('/etc/passwd')")
    assert dataset.sql("with w as (from windows) select count(*) > 0 from w").rows == ((True,),)
    assert dataset.sql("select count(*) from samples").rows == ((0,),)
    assert dataset.sql("describe trials").rows
    assert dataset.sql("from windows limit 1 -- the last line's comment").rows


def test_a_query_leaves_no_file_behind(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    Dataset([run]).sql("select * from windows order by random()")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("to_timestamp(0) at time zone 'UTC'", "1970-01-01 00:00:00"),
        ("[to_timestamp(1000000000)]", "2001-09-"),
        ("{'at': to_timestamp(1000000000)}", "2001-09-"),
        ("timestamptz 'infinity'", "infinity"),
    ],
)
def test_moments_with_a_time_zone_are_answered(run: Path, value: str, shown: str) -> None:
    answer = Dataset([run]).sql(f'select {value} as moment, 1 as moment, \'x\' as "a""b"; -- done')
    assert answer.columns == ("moment", "moment", 'a"b')
    assert shown in str(answer.rows[0][0])
    assert answer.rows[0][1:] == (1, "x")


def test_rows_with_moments_keep_their_order(run: Path) -> None:
    rows = Dataset([run]).sql("select to_timestamp(range) from range(9) order by 1 desc").rows
    assert [str(row[0])[17:19] for row in rows] == [f"{second:02}" for second in range(8, -1, -1)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_long_query_by_its_own_exception(number: signal.Signals) -> None:
    class Ended(BaseException):
        """What the handler of this test raises."""

    def end(*_: object) -> None:
        raise Ended

    connection, runs = connect(1), threading.Event()

    def work() -> object:
        runs.set()
        return connection.execute(ENDLESS)

    def kill() -> None:
        runs.wait()
        os.kill(os.getpid(), number)

    before = signal.signal(number, end)
    try:
        threading.Thread(target=kill).start()
        with pytest.raises(Ended):
            interruptible(connection, work)
    finally:
        signal.signal(number, before)
    assert connection.execute("select 1").fetchall() == [(1,)]
