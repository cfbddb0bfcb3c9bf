from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.environments import local
from harness.environments.lock import EnvironmentReference
from tests.pipes import wait_until_nobody_reads
from tests.tiny_framework import LOCK, TinyFramework, Told


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyFramework:
    return TinyFramework(tmp_path, monkeypatch)


class Command:
    """What ``bakeoff`` wrote and how it ended."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        captured = self._capfd.readouterr()
        return int(end.value.code or 0), captured.out, captured.err


@pytest.fixture
def bakeoff(capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(capfd)


def test_an_environment_is_made_listed_checked_and_removed(
    tiny: TinyFramework, bakeoff: Command
) -> None:
    tiny.offer("1.0")
    code, _, said = bakeoff("env", "create", "tiny")
    assert code == 0
    assert "tiny: Tiny 1.0 (cpu build), 1 packages, " in said
    assert "0 B to fetch" in said
    code, listed, _ = bakeoff("env", "list", "--json")
    row = next(one for one in json.loads(listed) if one["name"] == "tiny")
    assert (row["state"], row["version"], row["used_by"]) == ("ready", "1.0", ["tiny"])
    assert Path(row["python"]).is_file()
    assert bakeoff("env", "check", "tiny") == (0, "tiny: as the lock says\n", "")
    code, _, said = bakeoff("env", "remove", "tiny")
    assert (code, Path(row["path"]).exists()) == (0, False)
    assert said.startswith("Removed ")


def test_a_check_that_fails_ends_with_1(tiny: TinyFramework, bakeoff: Command) -> None:
    next(tiny.built().root.glob("lib/python3*/site-packages/tiny/__init__.py")).unlink()
    code, out, _ = bakeoff("env", "check", "--json")
    assert code == 1
    assert "files missing" in json.loads(out)["tiny"][0]


def test_checking_what_is_not_built_says_how_to_build_it(
    tiny: TinyFramework, bakeoff: Command
) -> None:
    code, out, _ = bakeoff("env", "check", "tiny")
    assert (code, out) == (1, "tiny: not built: bakeoff env create tiny\n")
    code, out, err = bakeoff("env", "check", "pytroch")
    assert (code, out) == (2, "")
    assert "Did you mean 'torch'?" in err
    code, out, _ = bakeoff("env", "check", "null[lmdb]")
    assert (code, out) == (1, "null[lmdb]: not built: bakeoff env create 'null[lmdb]'\n")
    code, _, err = bakeoff("env", "check", "torch[nope]")
    assert (code, "has no group 'nope'" in err) == (2, True)
    code, _, err = bakeoff("env", "check")
    assert (code, err) == (1, "No environment is built. To build one: bakeoff env create torch\n")


def test_two_places_of_one_framework_are_told_apart_by_a_check(
    tiny: TinyFramework, bakeoff: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.offer("1.0")
    tiny.lock(LOCK, "torch")
    built = local.create(EnvironmentReference.parse("torch"), Told())
    (tiny.folder / "platforms").mkdir()
    named = f'[frameworks.torch]\ninterpreter = "{built.executable}"\n'
    there = f'title = "There"\nas_found = true\n{named}'
    (tiny.folder / "platforms" / "there.toml").write_text(there)
    monkeypatch.chdir(tiny.folder)
    code, out, err = bakeoff("env", "check", "torch", "--platform", "there")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "torch as there names it: answers where there says",
        f"torch in {built.root}: as the lock says",
    ]


def test_a_misspelt_environment_stops_before_anything_is_built(
    tiny: TinyFramework, bakeoff: Command
) -> None:
    code, _, err = bakeoff("env", "create", "tiny", "pytroch")
    assert code == 2
    assert "Did you mean 'torch'?" in err
    assert not (tiny.home / "environments").exists()


def test_what_is_used_as_it_is_is_not_built(tiny: TinyFramework, bakeoff: Command) -> None:
    code, _, err = bakeoff("env", "create", "null")
    assert (code, err.strip()) == (2, "null: there is nothing to build; a Python is used as it is.")


def test_the_table_names_every_lock(tiny: TinyFramework, bakeoff: Command) -> None:
    _, out, _ = bakeoff("env", "list")
    names = [line.split()[1] for line in out.splitlines()[1:]]
    assert {"torch", "jax", "tensorflow", "tensorflow@1.15", "keras", "null", "tiny"} <= set(names)


def test_removing_nothing_is_not_fine(tiny: TinyFramework, bakeoff: Command) -> None:
    assert bakeoff("env", "remove")[0] == 2
    assert bakeoff("env", "remove", "tiny")[0] == 1


def test_left_overs_go_together(tiny: TinyFramework, bakeoff: Command) -> None:
    left = tiny.home / "environments" / "gone-0123456789ab"
    left.mkdir(parents=True)
    code, out, _ = bakeoff("env", "remove", "--old", "--json")
    assert (code, [one["path"] for one in json.loads(out)]) == (0, [str(left)])
    assert not left.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_stopped_says_how_to_go_on_and_leaves_nothing_running(
    number: signal.Signals, tiny: TinyFramework, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # The import of the framework waits at the pipe: there the building is interrupted.
    tiny.offer("1.0", source=f"open({str(pipe)!r}).read()\n")
    building = subprocess.Popen(
        [sys.executable, "-m", "harness.cli", "env", "create", "tiny"],
        stderr=subprocess.PIPE,
        text=True,
    )
    with pipe.open("w") as end:
        building.send_signal(number)
        _, said = building.communicate(timeout=60)
        wait_until_nobody_reads(end)
    assert building.returncode == 128 + number
    assert "To go on: bakeoff env create tiny" in said
    assert "Traceback" not in said


def test_the_doctor_prints_what_json_holds(bakeoff: Command) -> None:
    code, out, _ = bakeoff("doctor", "--json")
    report = json.loads(out)
    assert (code, report["sound"]) == (0, True)
    code, text, _ = bakeoff("doctor")
    assert code == 0
    for finding in (*report["installation"], *report["machine"]):
        assert finding["check"] in text


def test_the_doctor_ends_with_1_when_something_must_be_repaired(
    bakeoff: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.doctor import installation

    monkeypatch.setattr(installation.metadata, "version", lambda name: "0.0.1")
    code, out, _ = bakeoff("doctor")
    assert code == 1
    assert "✗  libraries" in out
    assert "Run `make setup`" in out
