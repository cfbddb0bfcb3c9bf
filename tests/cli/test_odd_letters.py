"""Texts and paths that are no Unicode cost nothing but their own letters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.store.layout import RunPaths
from tests.outcomes import seal_all
from tests.runs import Behaviour, RecordedCell, Recording, write_run

CELLS = [RecordedCell(behaviour=Behaviour(windows=8, warmup=2))]
ASKED = (
    ["list", "runs"],
    ["show", "{run}"],
    ["show", "{run}", "--json"],
    ["report", "{run}"],
    ["report", "{run}", "--output", "page.html"],
    ["sql", "{run}", "select * from runs, trials, versions, windows"],
    ["sql", "{run}", "select * from runs, trials, versions, windows", "--csv"],
    ["sql", "{run}", "select * from runs, trials, versions, windows", "--json"],
    ["sql", "{run}", "select 1 / count(*) from trials where run = '{run}'"],
    *(
        ["export", "{run}", "--to", form, "--table", "trials"]
        for form in ("csv", "json", "latex", "markdown")
    ),
    ["export", "{run}", "--to", "parquet", "--output", "t.parquet"],
    ["export", "{run}", "--to", "junit"],
    ["compare", "{run}", "{other}"],
)


def asked(folder: Path, *arguments: str | bytes) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "harness.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False)


def odd(text: str, where: str) -> str:
    assert where in text
    return text.replace(where, where + "\\ud800\\udfff", 1).replace(where, where + "\\udcff")


@pytest.fixture
def told_oddly(tmp_path: Path) -> Path:
    """Write lone surrogates into each file of a run that holds words."""
    run = write_run(tmp_path / "runs", CELLS, Recording(name="one", title="a title"))
    write_run(tmp_path / "runs", CELLS, Recording(name="two"))
    paths = RunPaths(run)
    for file, key in (
        (paths.plan, '"title": "'),
        (paths.plan, '"label": "'),
        (paths.provenance, '": "'),
        *((one, '"reason": "') for one in run.glob("cells/*/*/outcome.json")),
        *((one, '"versions":{"') for one in run.glob("cells/*/*/events.0.jsonl")),
    ):
        text = file.read_text()
        here = key if key in text else key.replace('":', '": ')
        file.write_text(odd(text, here))
    seal_all(run)
    return run


@pytest.mark.parametrize("arguments", ASKED, ids=" ".join)
def test_lone_surrogates_in_messages_hide_nothing(told_oddly: Path, arguments: list[str]) -> None:
    words = [one.format(run="one", other="two") for one in arguments]
    done = asked(told_oddly.parents[1], *words)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout + done.stderr
    (done.stdout + done.stderr).decode()
    if "--json" in words:
        json.loads(done.stdout)


@pytest.mark.parametrize("arguments", ASKED, ids=" ".join)
def test_a_path_that_is_no_unicode_is_read(tmp_path: Path, arguments: list[str]) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    write_run(folder / "runs", CELLS, Recording(name="two"))
    write_run(folder / "runs", CELLS, Recording(name="one")).rename(
        folder / "runs" / os.fsdecode(b"\xff")
    )
    words = [os.fsencode(one.format(run=os.fsdecode(b"\xff"), other="two")) for one in arguments]
    done = asked(folder, *words)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert done.returncode == 0, done.stderr.decode()
