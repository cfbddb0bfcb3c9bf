"""These tests measure two sides in one session, and trust only code that is ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.cli.main import _run

STUDY = """title = "Null"
[matrix]
workload = ["nothing"]
framework = "null"
batch = {batch}
[measure]
trials = {trials}
warmup = "3 steps"
until = "20 ms"
turns = false
tolerate = ["contended", "throttled", "stalled"]
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def study(name: str, batch: int, trials: int = 6) -> str:
    Path(name).write_text(STUDY.format(batch=batch, trials=trials))
    return name


def one_run(place: Path) -> Path:
    (found,) = (place / "runs").glob("compare-now-*")
    return found


def test_two_studies_are_measured_in_one_session_and_answered(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = study("one.toml", 16), study("two.toml", 64)
    assert _run(["compare", "--now", first, second, "--json"]) == 0
    told = capsys.readouterr()
    said = json.loads(told.out)
    assert [cell["trials"] for cell in said["cells"]] == [[6, 6]]
    assert said["cells"][0]["ratio"] > 0
    assert {"what": "batch", "before": "16", "after": "64"} in said["differences"]
    assert "A is one.toml, B is two.toml." in told.err
    assert "2 cells, 6 trials each" in told.err
    plan = json.loads((one_run(place) / "plan.json").read_text())
    assert [cell["label"].rpartition(" ")[2] for cell in plan["cells"]] == ["A", "B"]
    assert _run(["compare", str(one_run(place))]) == 0
    assert "measured in one session, in 6 blocks" in capsys.readouterr().out


def test_what_does_not_differ_is_not_measured_against_itself(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = study("one.toml", 16)
    assert _run(["compare", "--now", same, same]) == 2
    assert "nothing differs between A and B" in capsys.readouterr().err
    assert not (place / "runs").exists()


def test_too_few_blocks_are_raised_to_what_can_tell(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study("one.toml", 16, trials=1), study("two.toml", 64)
    assert _run(["compare", "--now", "one.toml", "two.toml"]) == 0
    said = capsys.readouterr().err
    assert "6 blocks are run: fewer cannot tell." in said
    assert "different protocols" in said


def edited(run: Path, name: str) -> Path:
    """Copy a run as if another had sent it, with code of its own."""
    copy = run.with_name(name)
    shutil.copytree(run, copy)
    loop = copy / "payload" / "harness" / "worker" / "loop.py"
    loop.write_text(loop.read_text() + "\nSENT = True\n")
    return copy


def test_two_runs_run_their_own_code_once_it_is_trusted(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["run", study("one.toml", 16, trials=1), "--name", "mine"]) in (0, 1)
    sent = edited(place / "runs" / "mine", "sent")
    assert _run(["compare", "--now", "mine", str(sent)]) == 1
    assert "add --trust-payload" in capsys.readouterr().err
    assert not list((place / "runs").glob("compare-now-*"))
    assert _run(["compare", "--now", "mine", str(sent), "--trust-payload"]) == 0
    capsys.readouterr()
    run = one_run(place)
    assert "SENT" in (run / "payload.3" / "harness" / "worker" / "loop.py").read_text()
    assert "SENT" not in (run / "payload" / "harness" / "worker" / "loop.py").read_text()
    cells = json.loads((run / "plan.json").read_text())["cells"]
    assert [cell.get("payload") for cell in cells] == [None, "payload.3"]
    ran = [json.loads(one.read_text())["fingerprint"] for one in run.glob("cells/*/*/outcome.json")]
    assert len(set(ran)) == 2, "each side ran its own code"
    assert "--trust-payload" in (run / "report.html").read_text()


def test_a_session_goes_on_with_both_sides_code_and_not_with_code_that_was_changed_since(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["run", study("one.toml", 16, trials=1), "--name", "mine"]) in (0, 1)
    sent = edited(place / "runs" / "mine", "sent")
    assert _run(["compare", "--now", "mine", str(sent), "--trust-payload"]) == 0
    run = one_run(place)
    for outcome in sorted(run.glob("cells/*/*/outcome.json"))[-3:]:
        outcome.unlink()
    assert _run(["resume", str(run)]) == 0
    capsys.readouterr()
    assert _run(["compare", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"][0]["trials"] == [6, 6]
    for outcome in sorted(run.glob("cells/*/*/outcome.json"))[-3:]:
        outcome.unlink()
    loop = run / "payload.3" / "harness" / "worker" / "loop.py"
    loop.write_text(loop.read_text() + "\nSENT = 2\n")
    assert _run(["resume", str(run)]) == 1
    assert "payload.3: this code of one side was changed since" in capsys.readouterr().err


def test_a_run_without_its_code_is_refused_in_a_sentence(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["run", study("one.toml", 16, trials=1), "--name", "mine"]) in (0, 1)
    copy = shutil.copytree("runs/mine", "sent", ignore=shutil.ignore_patterns("payload"))
    for trust in ([], ["--trust-payload"]):
        assert _run(["compare", "--now", "mine", str(copy), *trust]) == 1
        assert "payload: the code of this side is not there" in capsys.readouterr().err


def test_options_of_a_session_are_refused_without_one(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["compare", "a", "b", "--trust-payload"]) == 2
    assert "--trust-payload is for --now" in capsys.readouterr().err
