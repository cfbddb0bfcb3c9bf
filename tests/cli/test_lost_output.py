"""Output that nobody can read stops no work, and the exit code says what was lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs import Behaviour, RecordedCell, Recording, write_run

CELLS = [RecordedCell(behaviour=Behaviour(windows=8, warmup=2))]
FLOOR = """
title = "The floor"
[matrix]
workload = "nothing"
framework = "null"
[measure]
trials = 2
warmup = "3 steps"
until = "50 steps"
tolerate = ["contended", "throttled", "stalled"]
"""
VERBS = (
    "list frameworks",
    "show one",
    "report one",
    "compare one two",
    "export one --to csv",
    "sql one select(1)",
    "plan floor.toml",
    "--help",
)


def shell(folder: Path, words: str, redirection: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a shell, which closes and redirects; the status is the command's own."""
    script = f'"$0" -m harness.cli {words} {redirection}'
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {script}", sys.executable],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "floor.toml").write_text(FLOOR)
    for name in ("one", "two"):
        write_run(tmp_path / "runs", CELLS, Recording(name=name))
    return tmp_path


@pytest.mark.parametrize("words", VERBS)
def test_a_full_or_closed_standard_output_is_told_in_one_line(folder: Path, words: str) -> None:
    for redirection in (">/dev/full", ">&-"):
        done = shell(folder, words.replace("select(1)", "'select 1'"), redirection)
        last = done.stderr.splitlines()[-1]
        assert last.startswith("The output cannot be written: "), done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
        assert done.returncode == 1


@pytest.mark.parametrize("words", VERBS)
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "| head -c 1", "|& head -c 1"])
def test_a_lost_word_to_a_person_changes_nothing(
    folder: Path, words: str, redirection: str
) -> None:
    done = shell(folder, words.replace("select(1)", "'select 1'"), redirection)
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", ["show one", "plan floor.toml", "sql one '{}' --csv"])
@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_letters_that_an_encoding_lacks_are_written_by_their_numbers(
    folder: Path, words: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    study = folder / "floor.toml"
    study.write_text(FLOOR.replace("The floor", "The floor \u2713"))
    words = words.format("select chr(10003)")
    for redirection, code in (("", 0), ("2>&1", 0), ("|& head -c 1", 0), (">&- 2>&-", 1)):
        done = shell(folder, words, redirection)
        assert "Traceback" not in done.stdout + done.stderr
        assert done.returncode == code, done.stderr


@pytest.mark.parametrize(
    ("redirection", "code"),
    [
        *((">/dev/full", 1), (">&-", 1), ("2>&-", 0), ("2>/dev/full", 0), ("<&- >&- 2>&-", 1)),
        *(("| head -c 0", 0), ("|& head -c 0", 0)),
    ],
)
def test_a_run_goes_on_to_its_end(folder: Path, redirection: str, code: int) -> None:
    done = shell(folder, "run floor.toml --name new", redirection)
    run = folder / "runs" / "new"
    assert len(list(run.glob("cells/*/trial-[12]/outcome.json"))) == 2, done.stderr
    assert (run / "report.html").is_file()
    assert done.returncode == code, done.stderr
    for file in run.glob("*.json*"):
        text = file.read_text()
        assert text.startswith("{"), f"{file.name} took what was meant for a closed stream"
