"""Tables leave as CSV, JSON, Markdown, LaTeX, Parquet and JUnit, with nothing lost or invented."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from xml.etree import ElementTree

import duckdb
import pytest

from harness.analysis import tables
from harness.errors import UsageError
from harness.sections.contract import blocks
from harness.sections.contract.read import read_table
from harness.sections.contract.section import sections, table
from harness.sections.ranking import ranking
from reports.exports.formats.csv import of_table as as_csv
from reports.exports.formats.json import of_table as as_json
from reports.exports.formats.junit import of_results as as_junit
from reports.exports.formats.latex import of_table as as_latex
from reports.exports.formats.markdown import of_table as as_markdown
from reports.exports.formats.parquet import of_table as as_parquet
from tests import needs, runs
from tests.reports import samples


def _tables(results, evidence=None):
    return [one for made in sections(results, evidence).made for one in blocks.tables(made.blocks)]


def _table(results, name):
    return table(sections(results), name)


def test_csv_holds_raw_values_and_both_ends_of_intervals():
    rows = list(csv.DictReader(io.StringIO(as_csv(ranking(samples.demo())))))
    first = samples.demo().cells[0].rate
    assert float(rows[0]["rate"]) == first.value
    assert float(rows[0]["rate_interval_low"]) == first.interval.low
    assert rows[1]["ratio_interval_low"] == ""


@pytest.mark.parametrize(
    "cell", ["=1+1", "+x", "-x", "@SUM(A1)", "\t=1", "-1+cmd|' /C calc'!A0", "\uff1d1"]
)
def test_no_cell_of_csv_is_a_formula(cell):
    table = tables.Table(
        "t", "T", (tables.Column("a", "=a"), tables.Column("b", "b")), ((cell, -1.5),)
    )
    (head, row) = csv.reader(io.StringIO(as_csv(table)))
    assert row == [f"'{cell}", "-1.5"]
    assert not head[0].startswith("=")


def test_texts_that_are_numbers_stay_numbers_in_csv():
    table = tables.Table("t", "T", (tables.Column("a", "a"),), (("-1e-3",), ("+4",), ("x",)))
    assert as_csv(table).split() == ["a", "-1e-3", "+4", "x"]


def test_json_gives_null_for_unknown():
    rows = json.loads(as_json(_table(samples.failures(), "cells")))
    assert next(r for r in rows if r["trials"] == 0)["rate"] is None


def test_markdown_keeps_bars_and_tags_as_text():
    table = tables.Table("t", "T", (tables.Column("a", "a"),), (("x|y <b> ![z](w)",),))
    assert as_markdown(table).splitlines()[-1] == "| x\\|y &lt;b> !\\[z](w) |"


@pytest.mark.parametrize("written", [as_csv, as_markdown])
def test_nothing_in_a_text_steers_the_terminal_that_an_export_is_shown_on(written):
    table = tables.Table("t", "T", (tables.Column("a", "a"),), (("x\x1b[2J\x9b31m\x07y",),))
    assert not any(one in written(table) for one in "\x1b\x9b\x07")


def test_every_table_survives_parquet(tmp_path):
    place = tmp_path / "t.parquet"
    for one in _tables(samples.everything(), samples.evidence()):
        place.write_bytes(as_parquet(one))
        heads, rows = tables.flat(one)
        read = duckdb.connect().execute("SELECT * FROM read_parquet(?)", [str(place)])
        assert [column[0] for column in read.description] == heads
        assert len(read.fetchall()) == len(rows)


def test_an_empty_table_is_a_parquet_file_too(tmp_path):
    place = tmp_path / "t.parquet"
    place.write_bytes(as_parquet(_table(samples.two_runs(), "holes")))
    assert duckdb.connect().execute(
        "SELECT count(*) FROM read_parquet(?)", [str(place)]
    ).fetchall() == [(0,)]


def test_junit_fails_what_has_no_believable_number_and_skips_holes():
    root = ElementTree.fromstring(as_junit(samples.failures()))
    failures = [f.get("message") for f in root.iter("failure")]
    assert failures == [
        "it computes something else (logits differ by 3e-2)",
        "out of memory in your cgroup, limit 64 GiB, peak 63.9",
    ]
    assert [s.get("message") for s in root.iter("skipped")] == [samples.demo().holes[0].why]


def test_junit_says_of_the_reference_that_it_is():
    told = [
        case.text for case in ElementTree.fromstring(as_junit(samples.demo())).iter("system-out")
    ]
    assert sum((text or "").endswith("\nthe reference") for text in told) == 2
    assert not any("× reference: reference" in (text or "") for text in told)


def test_hostile_text_leaves_junit_well_formed():
    root = ElementTree.fromstring(as_junit(samples.hostile()))
    assert "alert(1)" in root.get("name")


@pytest.mark.parametrize("make", [samples.demo, samples.hostile, samples.everything])
def test_latex_compiles(make, tmp_path):
    compiler = needs.program("pdflatex", package="texlive-latex-base")
    body = "\n".join(as_latex(table) for table in _tables(make()) if table.rows)
    text = f"\\documentclass{{article}}\n\\begin{{document}}\n\\tiny\n{body}\\end{{document}}\n"
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [compiler, "-interaction=batchmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (tmp_path / "t.log").read_text(errors="replace")[-2000:]
    assert (tmp_path / "t.pdf").stat().st_size > 1000


def test_an_unknown_table_is_refused_with_the_nearest_name(tmp_path):
    directory = runs.write_run(tmp_path, [runs.RecordedCell()])
    with pytest.raises(UsageError, match="Did you mean 'ranking'"):
        read_table([directory], "rankin")


def test_no_two_tables_share_a_name():
    named = [table.name for table in _tables(samples.everything(), samples.evidence())]
    assert len(named) == len(set(named))
