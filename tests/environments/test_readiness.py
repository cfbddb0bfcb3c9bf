"""Readiness is what a framework itself answers, where the platform points."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy
import pytest

from harness import waiting
from harness.environments import worker_python
from harness.environments.inventory import PackageEntry, inventory
from harness.platform.platform import Platform, load_platform
from harness.platform.starting import FrameworkThere
from tests import needs
from tests.adapters.caffe.test_worker import program
from tests.cli.command import bakeoff

STAND_IN = Path(__file__).parents[1] / "adapters" / "singa" / "stand_in"
PATHS = f"{STAND_IN}:{Path(numpy.__file__).parents[1]}"


@pytest.fixture(autouse=True)
def _nothing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SINGA_PYTHON", "CAFFE_BIN", "INTEL_CAFFE_BIN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))


def entry(name: str, platform: Platform | None = None) -> PackageEntry:
    (found,) = [one for one in inventory(platform) if one.name == name]
    return found


def naming(framework: str, **there: object) -> Platform:
    """Give a platform that says this of a framework."""
    tables = {framework: FrameworkThere.model_validate(there)}
    return load_platform("local").model_copy(update={"name": "there", "frameworks": tables})


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_program_that_is_no_python_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINGA_PYTHON", "/bin/true")
    found = entry("singa")
    assert (found.state, found.named_by) == ("broken", "SINGA_PYTHON")
    assert "/bin/true (named by SINGA_PYTHON) is no Python" in found.detail


def test_a_python_without_the_framework_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINGA_PYTHON", sys.executable)
    found = entry("singa")
    assert found.state == "broken"
    assert "No module named 'singa'" in found.detail


@pytest.mark.parametrize("end", ["raise SystemExit(0)", "import os; os._exit(0)"])
def test_a_framework_that_ends_its_python_is_not_taken_for_another_program(
    tmp_path: Path, end: str
) -> None:
    (tmp_path / "singa").mkdir()
    said = "import sys\nprint('no licence', file=sys.stderr, flush=True)\n"
    (tmp_path / "singa" / "__init__.py").write_text(f"{said}{end}\n")
    there = naming("singa", interpreter=sys.executable, environment={"PYTHONPATH": str(tmp_path)})
    detail = entry("singa", there).detail
    assert detail.startswith("importing singa")
    assert detail.endswith("ended Python itself, with exit code 0: no licence")


def test_an_interpreter_that_hangs_is_waited_for_aloud_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_python, "_PATIENCE_S", 0.3)
    monkeypatch.setattr(waiting, "QUIET_S", 0.1)
    told: list[str] = []
    waiting.tell_by(told.append)
    slow = script(tmp_path / "slow", "exec sleep 600")
    found = entry("singa", naming("singa", interpreter=slow))
    assert f"Waiting for {slow} to say its version (at most 0.3 s) …" in told
    assert found.state == "broken"
    assert "asked for its version, did not end within 0.3 s" in found.detail


def test_what_kills_an_import_is_told_by_its_signal(tmp_path: Path) -> None:
    (tmp_path / "singa").mkdir()
    dies = "import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n"
    (tmp_path / "singa" / "__init__.py").write_text(dies)
    there = naming("singa", interpreter=sys.executable, environment={"PYTHONPATH": str(tmp_path)})
    assert "was ended by signal 4 (SIGILL)" in entry("singa", there).detail


def test_the_interpreter_that_a_platform_names_is_looked_into() -> None:
    there = naming("singa", interpreter=sys.executable, environment={"PYTHONPATH": PATHS})
    found = entry("singa", there)
    assert (found.state, found.named_by) == ("ready", "there")
    assert found.version is not None
    assert "stand-in" in found.version
    assert found.python_version == sys.version.split()[0]
    assert entry("singa").state == "unavailable"


def test_a_platform_s_interpreter_takes_the_place_of_an_environment_of_bakeoff_s_own() -> None:
    found = entry("torch", naming("torch", interpreter=sys.executable))
    assert found.state == "broken"
    assert "No module named 'torch'" in found.detail


def test_a_caffe_that_the_platform_names_is_found(tmp_path: Path) -> None:
    caffe = str(program(tmp_path, "bvlc"))
    found = entry("caffe", naming("caffe", environment={"CAFFE_BIN": caffe}))
    assert (found.state, found.version, found.named_by) == ("ready", "1.0.0-stand-in", "there")
    assert entry("caffe").state == "unavailable"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo 'true (GNU coreutils) 9.1'", "--version says nothing of 'caffe'"),
        ("echo 'caffe: libboost.so: cannot open shared object' >&2; exit 127", "libboost.so"),
    ],
)
def test_a_program_is_believed_to_be_caffe_only_if_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    monkeypatch.setenv("CAFFE_BIN", script(tmp_path / "program", text))
    found = entry("caffe")
    assert found.state == "broken"
    assert words in found.detail


def test_verbs_look_where_the_platform_points(tmp_path: Path) -> None:
    (tmp_path / "platforms").mkdir()
    named = f'interpreter = {json.dumps(sys.executable)}\nenvironment.PYTHONPATH = "{PATHS}"\n'
    lines = f'[frameworks.singa]\n{named}[frameworks.caffe.environment]\nCAFFE_BIN = "/bin/true"\n'
    (tmp_path / "platforms" / "there.toml").write_text(f'title = "There"\nas_found = true\n{lines}')
    on = ("--platform", "there")
    listed = bakeoff("env", "list", *on, "--json", cwd=tmp_path)
    states = {one["name"]: one["state"] for one in json.loads(listed.stdout)}
    assert (states["singa"], states["caffe"]) == ("ready", "broken")
    checked = bakeoff("env", "check", "singa", *on, cwd=tmp_path)
    assert (checked.returncode, checked.stdout) == (0, "singa: answers where there says\n")
    checked = bakeoff("env", "check", "caffe", *on, cwd=tmp_path)
    assert checked.returncode == 1
    assert "/bin/true --version says nothing of 'caffe'" in checked.stdout
    report = json.loads(bakeoff("doctor", *on, "--json", cwd=tmp_path).stdout)
    found = {one["check"]: one for one in report["installation"]}
    assert found["environment caffe"]["level"] == "fault"
    assert "singa" in found["environments"]["seen"]


@pytest.mark.engine
def test_an_image_is_entered_by_a_check_and_not_by_a_list(tmp_path: Path) -> None:
    needs.program("bwrap", package="bubblewrap")
    python = str(Path(sys.executable).resolve())
    image = f'engine = "bwrap"\nimage = "/"\ninterpreter = "{python}"\n'
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "boxed.toml").write_text(
        f'title = "Boxed"\nas_found = true\n[frameworks.singa.container]\n{image}'
        f"[frameworks.null.container]\n{image}"
    )
    there = load_platform("boxed", beside=tmp_path)
    assert [entry(name, there).state for name in ("singa", "null")] == ["unchecked"] * 2
    checked = bakeoff("env", "check", "singa", "null", "--platform", "boxed", cwd=tmp_path)
    assert checked.returncode == 1
    assert "singa: ModuleNotFoundError: No module named 'singa'" in checked.stdout
    assert "null: answers where boxed says" in checked.stdout


def test_a_variant_that_a_platform_does_not_name_itself_is_no_fault_of_the_platform() -> None:
    there = naming("caffe", interpreter=sys.executable)
    assert (entry("caffe", there).state, entry("caffe@intel", there).state) == (
        "broken",
        "unavailable",
    )


def test_a_simulated_platform_has_the_environments_of_this_machine() -> None:
    simulated = {one.name: one.state for one in inventory(load_platform("simulated-cluster"))}
    assert simulated == {one.name: one.state for one in inventory()}


def test_a_variant_that_is_a_pythons_is_not_ready_under_another_one() -> None:
    platform = naming("null", interpreter=sys.executable)
    assert entry("null", platform).state == "ready"
    found = entry("null@3.7", platform)
    assert found.state == "unavailable"
    assert f"is Python {'.'.join(map(str, sys.version_info[:3]))}" in found.detail
    assert "null@3.7 stands for Python >=3.7,<3.8" in found.detail
    assert 'Name one: [frameworks."null@3.7"]' in found.detail
    assert entry("null@3.7", naming("null@3.7", interpreter=sys.executable)).state == "broken"


def test_a_variant_under_the_python_that_a_platform_names_for_it_is_ready() -> None:
    found = entry("null@3.7", naming("null@3.7", interpreter=needs.python37()))
    assert (found.state, (found.python_version or "")[:4]) == ("ready", "3.7.")
