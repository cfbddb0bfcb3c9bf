"""The command line prints through one module, and nothing that steers a terminal."""

from __future__ import annotations

import ast
import json
import math
import os
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

import harness.cli
from harness.cli.output import Styled, Table, emit, note, say, show_warnings, visible
from tests.cli.command import bakeoff
from tests.runs import RecordedCell, Recording, write_run

CLI = Path(harness.cli.__file__).parent
HOSTILE = "red \x1b[31mname\x9b1m\r\x07\u202e"


@dataclass(frozen=True)
class Told:
    """A result."""

    name: str
    rate: float
    place: Path


def lines(part: str | Styled | Table, capsys: pytest.CaptureFixture[str]) -> list[str]:
    say(part)
    return capsys.readouterr().out.splitlines()


def test_a_result_is_printed_in_words_or_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    told = Told("torch", 3.5, Path("runs"))
    emit(told, lambda: ["torch reaches 3.5"], as_json=False)
    assert capsys.readouterr().out == "torch reaches 3.5\n"
    emit(told, lambda: 1 / 0, as_json=True)  # words are not made where nobody reads them
    assert json.loads(capsys.readouterr().out) == {"name": "torch", "rate": 3.5, "place": "runs"}


def test_what_is_unknown_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    emit([Told("torch", math.nan, Path())], list, as_json=True)
    assert json.loads(capsys.readouterr().out)[0]["rate"] is None


@pytest.mark.parametrize("as_json", [True, False])
def test_a_name_cannot_steer_the_terminal(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Table([[HOSTILE, Styled(HOSTILE, "red")]], head=[HOSTILE, "x"])
    emit({HOSTILE: HOSTILE}, lambda: [HOSTILE, Styled(HOSTILE, bold=True), table], as_json=as_json)
    note(HOSTILE)
    said = capsys.readouterr()
    assert "name" in said.out + said.err
    assert visible(said.out + said.err) == said.out + said.err


def test_lines_stay_lines() -> None:
    assert visible("one\n\ttwo\u00a0three\x1b") == "one\n\ttwo three�"


def test_columns_are_as_wide_as_they_need_and_numbers_stand_to_the_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = Table([["a", "10"], ["longer", "7"]], head=["name", "n"], right=frozenset({1}))
    assert lines(table, capsys) == ["name     n", "a       10", "longer   7"]


def test_letters_that_take_two_columns_are_counted_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(Table([["計算", "1"], ["abcd", "2"]]), capsys) == ["計算  1", "abcd  2"]


def test_a_cell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(Table([["one\ntwo", "x"]]), capsys) == ["one two  x"]


def test_an_empty_table_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(Table([]), capsys) == []


@pytest.mark.parametrize("path", sorted(CLI.rglob("*.py")), ids=lambda path: path.stem)
def test_nothing_else_of_the_command_line_prints(path: Path) -> None:
    if path.name == "output.py":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    printing = {"click.echo", "click.secho", "print", "json.dumps", "sys.stdout.buffer.write"}
    assert called & printing == set()


def test_a_run_of_somebody_else_cannot_steer_the_terminal(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs", [RecordedCell()], Recording(name="one", title=HOSTILE))
    write_run(tmp_path / "runs", [RecordedCell()], Recording(name="two", title=HOSTILE))
    for arguments in (
        *(["list", "runs"], ["show", "one"], ["status", "one"], ["show", HOSTILE]),
        *(["compare", "one", "two"], ["sql", "one", "select title from runs"]),
        *(["sql", "one", f"select {HOSTILE}"], [HOSTILE], ["list", HOSTILE]),
    ):
        for form in ([], ["--json"]):
            asked = bakeoff(*arguments, *form, cwd=tmp_path)
            said = asked.stdout + asked.stderr
            assert said
            assert visible(said) == said, arguments
    assert run.is_dir()


def test_a_warning_of_pythons_is_a_note_of_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        show_warnings()
        warnings.warn(f"{HOSTILE}\nof two lines", RuntimeWarning, stacklevel=1)
    printed = capsys.readouterr()
    (told,) = printed.err.splitlines()
    assert (printed.out, told.isprintable()) == ("", True)
    assert told.startswith("Warning: red ")
    assert "of two lines (RuntimeWarning at test_output.py:" in told


def test_every_command_prints_warnings_so(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text(
        "import atexit, sys, warnings\n"
        f"sys.path[:] = {sys.path!r}\n"
        "del sys.modules['click']\n"
        "atexit.register(warnings.warn, 'two\\x1b[2J\\nlines', RuntimeWarning)\n"
        "import click\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "harness.cli", "--version"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{CLI.parents[1]}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr.startswith("Warning: two lines (RuntimeWarning")
