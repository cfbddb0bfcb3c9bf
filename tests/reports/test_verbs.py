"""The verbs show, report and export read real run directories."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.verbs.export import command as export
from harness.cli.verbs.report import command as report
from harness.cli.verbs.show import command as show
from harness.errors import RunError, UsageError
from tests import runs


@pytest.fixture
def recorded(tmp_path):
    faster = runs.Behaviour(step_s=0.015)
    cells = [runs.RecordedCell(), runs.RecordedCell(framework="jax", behaviour=faster)]
    return runs.write_run(tmp_path / "runs", cells)


def invoke(command, *arguments):
    done = CliRunner().invoke(command, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def test_show_answers_in_a_sentence(recorded):
    assert "Answer: jax is 1.3" in invoke(show, recorded).stdout


def test_show_gives_the_same_as_json(recorded):
    told = json.loads(invoke(show, recorded, "--json").stdout)
    assert told["answers"][0]["answer"].startswith("jax is 1.3")
    assert [row["cell"] for row in told["ranking"]] == ["jax", "torch"]


def test_report_writes_into_the_run_directory(recorded):
    place = invoke(report, recorded).stdout.strip()
    assert place == str(recorded / "report.html")
    assert (recorded / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_a_page_that_goes_into_a_pipe_is_all_that_goes_there(recorded):
    program = "from harness.cli.main import main; main()"
    words = [sys.executable, "-c", program, "report", str(recorded), "--output", "/dev/stdout"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("</html>")
    assert done.stderr.strip() == "/dev/stdout"


def test_a_folder_of_runs_is_one_page_side_by_side(tmp_path, recorded):
    other = runs.Recording(name="other", platform={"name": "minna", "title": "Minna"})
    runs.write_run(tmp_path / "runs", [runs.RecordedCell()], other)
    place = tmp_path / "both.html"
    invoke(report, tmp_path / "runs", "--output", place)
    assert "Minna" in place.read_text()
    assert "A laptop" in place.read_text()


def test_two_runs_are_compared_on_the_page(tmp_path, recorded):
    slower = runs.RecordedCell(behaviour=runs.Behaviour(step_s=0.03))
    other = runs.write_run(tmp_path / "runs", [slower], runs.Recording(name="after"))
    place = tmp_path / "changes.html"
    invoke(report, recorded, other, "--compare", "--output", place)
    page = place.read_text()
    assert "What changed from recorded-2026-11-21 to after?" in page
    assert "These two runs cannot tell whether this 1 cell changed." in page
    assert "bakeoff compare --now recorded-2026-11-21 after" in page


def test_comparing_takes_two_runs(recorded):
    with pytest.raises(UsageError, match="takes exactly two runs; 1 are named"):
        invoke(report, recorded, "--compare")


def test_a_run_is_found_by_its_name_under_runs(recorded, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert "Answer:" in invoke(show, recorded.name).stdout


def test_a_run_whose_name_is_misspelt_is_named(recorded, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    said = f"nor in runs/. Did you mean '{recorded.name}'? `bakeoff list runs` names them"
    for typed in (recorded.name[:-1], f"runs/{recorded.name}s"):
        with pytest.raises(RunError, match=re.escape(said)):
            invoke(show, typed)


def test_what_is_no_run_is_refused_in_words(tmp_path):
    with pytest.raises(RunError, match="neither this folder nor any in it is a run"):
        invoke(show, tmp_path)
    with pytest.raises(RunError, match="there is no such run"):
        invoke(show, tmp_path / "nowhere")


def test_export_of_a_table_that_is_not_there_names_those_that_are(recorded):
    with pytest.raises(UsageError, match=r"These have rows: .*ranking, .*cells, .*trials"):
        invoke(export, recorded, "--to", "csv", "--table", "?")


@pytest.mark.parametrize("form", ["csv", "json", "markdown", "latex", "junit"])
def test_export_writes_text_to_standard_output(recorded, form):
    assert "torch" in invoke(export, recorded, "--to", form).stdout


def test_export_writes_parquet_to_a_file(recorded, tmp_path):
    place = tmp_path / "trials.parquet"
    invoke(export, recorded, "--to", "parquet", "--table", "trials", "--output", place)
    assert place.read_bytes()[:4] == b"PAR1"


@pytest.mark.parametrize(("verb", "options"), [(export, ("--to", "csv")), (report, ())])
def test_a_full_device_is_said_and_stays_a_device(recorded, verb, options):
    with pytest.raises(RunError, match="the disk is full"):
        invoke(verb, recorded, *options, "--output", "/dev/full")
    assert Path("/dev/full").is_char_device()
    assert not Path("/dev/full-results.json").exists()


def test_report_names_its_page_from_the_root_as_run_and_resume_do(recorded, monkeypatch):
    monkeypatch.chdir(recorded.parent)
    told = json.loads(invoke(report, recorded.name, "--json").stdout)
    assert told["report"] == str(recorded / "report.html")
