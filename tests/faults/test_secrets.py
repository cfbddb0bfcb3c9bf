"""No secret stands in any file of a run, or on anything that is made of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.worker.redaction.places import HIDDEN
from tests.planted_secrets import KINDS, planted

from .conftest import HERE

OWN_LINE = "no secret and no word of it is lost"


def toml(text: str) -> str:
    return json.dumps(text)  # a TOML string is written alike


def bakeoff(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **{f"OUTER_{one.name}": one.value for one in KINDS}}
    environment |= {one.name: one.value for one in KINDS}
    environment |= {"PYTHONPATH": str(HERE / "acme"), "XDG_STATE_HOME": str(folder / "state")}
    return subprocess.run(
        [sys.executable, "-m", "harness.cli", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    variables = "\n".join(f"{one.name} = {toml(one.value)}" for one in KINDS)
    (tmp_path / "platform.toml").write_text(
        f"""title = "The machine of the tests"
as_found = true
nodes = 1
[binding]
oversubscribe = true
[environment]
OMP_DISPLAY_ENV = "false"
{variables.replace("SETTING", "OF_PLATFORM")}
[frameworks.unruly]
interpreter = "{sys.executable}"
[frameworks.unruly.environment]
{variables}
"""
    )
    comments = "\n".join(
        f"# {one.name}={line}" for one in KINDS for line in one.value.split("\n")[:1]
    )
    (tmp_path / "study.toml").write_text(
        f"""title = {toml(f"A title with {KINDS[0].value}")}
question = {toml(" ".join(f"{one.name}={one.value}" for one in KINDS if " " not in one.value))}
{comments}
[matrix]
workload = "nothing"
framework = "unruly"
unruly.how = ["tells-all", "behave"]
[measure]
trials = 2
warmup = "3 steps"
until = "20 ms"
"""
    )
    done = bakeoff(tmp_path, "run", "study.toml", "--platform", "platform.toml", "--name", "it")
    assert "Traceback" not in done.stderr, done.stderr
    return tmp_path / "runs" / "it"


def test_no_file_of_a_run_and_nothing_made_of_it_holds_a_secret(run: Path) -> None:
    folder = run.parents[1]
    for verb in ("show", "report", "status"):
        done = bakeoff(folder, verb, str(run))
        assert planted(done.stdout + done.stderr) == []
    for verb in (("export", "--to", "csv", "--table", "trials"), ("show", "--json")):
        done = bakeoff(folder, verb[0], str(run), *verb[1:])
        assert planted(done.stdout + done.stderr) == []
    asked = bakeoff(folder, "sql", str(run), "select platform, provenance from runs", "--csv")
    assert asked.returncode == 0, asked.stderr
    assert planted(asked.stdout) == []
    found = {
        str(file.relative_to(run)): kinds
        for file in run.rglob("*")
        if file.is_file() and (kinds := planted(file.read_text(errors="replace")))
    }
    assert found == {}
    assert (run / "report.html").is_file()
    said = "".join(one.read_text() for one in run.glob("cells/*/trial-1/rank.0.*"))
    assert said.count(HIDDEN) > 2 * len(KINDS)
    assert "OMP_DISPLAY_ENV=false" in said


def test_ranks_get_real_values_after_a_resume_and_a_lost_profile_is_named(run: Path) -> None:
    folder = run.parents[1]
    (lost,) = (
        one.parent
        for one in run.glob("cells/*/trial-2/outcome.json")
        if json.loads(one.read_text())["outcome"] == "ok"
    )
    (lost / "outcome.json").unlink()
    profile = folder / "platform.toml"
    text = profile.read_text()
    profile.unlink()
    refused = bakeoff(folder, "resume", str(run))
    assert refused.returncode == 1
    assert f"Its profile is gone, which has them: {profile}" in refused.stderr
    profile.write_text(text)
    done = bakeoff(folder, "resume", str(run))
    assert (lost / "outcome.json").is_file(), done.stderr
