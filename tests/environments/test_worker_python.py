from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.environments import cache, local
from harness.environments.lock import EnvironmentReference
from harness.environments.worker_python import Interpreter, resolve
from harness.environments.worker_variables import isolated
from harness.errors import Unavailable, UsageError
from harness.platform.platform import Platform, load_platform
from harness.platform.starting import FrameworkThere
from tests import needs
from tests.tiny_framework import TinyFramework, Told

SHOW = "import json, sys; print(json.dumps([sys.path, list(sys.version_info[:2])]))"


def platform(**there: object) -> Platform:
    frameworks = {"tiny": FrameworkThere.model_validate(there)} if there else {}
    return Platform.model_construct(
        name="here", title="here", frameworks=frameworks, modules=(), accelerators=()
    )


def run(interpreter: Interpreter, code: str) -> str:
    answer = subprocess.run(
        [*interpreter.argv, "-c", code],
        env=dict(interpreter.env),
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.strip()


@pytest.fixture
def module_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module system of one function: `bin/1.0` changes the PATH, `quiet` fails silently."""
    init = tmp_path / "modules" / "init"
    init.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    (init / "bash").write_text(
        f"""module() {{
    shift
    for name in "$@"; do
        case "$name" in
        bin/1.0) export PATH="{tmp_path}/bin:$PATH" PYTHONHOME="{sys.base_prefix}" TINY_ROOT="two
lines";;
        absent) echo "Unable to locate a modulefile for 'absent'" >&2; return 1;;
        quiet) echo "ModuleCmd_Load.c(213):ERROR:105" >&2; continue;;
        esac
        export LOADEDMODULES="${{LOADEDMODULES:+$LOADEDMODULES:}}$name"
    done
}}
echo "welcome to the cluster"
"""
    )
    monkeypatch.setenv("MODULESHOME", str(tmp_path / "modules"))
    monkeypatch.delenv("LMOD_PKG", raising=False)
    return tmp_path / "bin"


def test_a_missing_environment_names_the_command_that_builds_it(tiny: TinyFramework) -> None:
    with pytest.raises(Unavailable, match=r"Build it: bakeoff env create tiny$"):
        resolve("tiny", platform())


def test_groups_are_quoted_for_the_shell(tiny: TinyFramework) -> None:
    with pytest.raises(Unavailable, match=r"bakeoff env create 'tiny\[extra\]'$"):
        resolve("tiny[extra]", platform())


def test_workers_run_in_the_environment_that_was_built(tiny: TinyFramework, told: Told) -> None:
    tiny.offer("1.0")
    built = local.create(EnvironmentReference.parse("tiny"), told)
    found = resolve("tiny", platform())
    assert found.argv == (str(built.executable),)
    assert run(found, "import tiny; print(tiny.__version__)") == "1.0"
    assert found.description.startswith("Tiny 1.0 (Python ")
    assert found.record()["packages"] == {"tiny": "1.0"}


@pytest.mark.slow
def test_nothing_of_the_host_reaches_a_worker(
    tiny: TinyFramework, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.built()
    user_site = tmp_path / "user"
    monkeypatch.setenv("PYTHONUSERBASE", str(user_site))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "leak"))
    for framework in ("tiny", "null"):
        path = run(resolve(framework, platform()), SHOW)
        assert str(tmp_path / "leak") not in path
        assert str(user_site) not in path
        assert str(Path(sys.prefix) / "lib") not in path or sys.prefix == sys.base_prefix


def test_null_sees_the_standard_library_only() -> None:
    found = resolve("null", platform())
    assert "site-packages" not in run(found, SHOW)
    assert run(found, "import dataclasses, json; print('ok')") == "ok"


def test_null_runs_under_the_oldest_python_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_PYTHON37", needs.python37())
    assert run(resolve("null@3.7", platform()), SHOW).endswith("[3, 7]]")


@pytest.mark.slow
def test_the_fingerprint_follows_the_packages_and_not_the_place(
    tiny: TinyFramework, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.built()
    here = resolve("tiny", platform()).fingerprint
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "another home"))
    tiny.offer("2.0", name="tiny-extra")
    local.create(EnvironmentReference.parse("tiny"), told)
    assert resolve("tiny", platform()).fingerprint == here
    local.create(EnvironmentReference.parse("tiny[extra]"), told)
    assert resolve("tiny[extra]", platform()).fingerprint != here


@pytest.mark.slow
def test_a_platform_with_gpus_prefers_that_build(tiny: TinyFramework, told: Told) -> None:
    cpu = tiny.built()
    gpus = platform().model_copy(update={"accelerators": ("a gpu",)})
    assert resolve("tiny", gpus).argv == (str(cpu.executable),)
    gpu = local.create(EnvironmentReference.parse("tiny"), told, device="gpu")
    assert resolve("tiny", gpus).argv == (str(gpu.executable),)
    assert resolve("tiny", platform()).argv == (str(cpu.executable),)


@pytest.mark.slow
def test_an_unfinished_environment_is_not_used(tiny: TinyFramework) -> None:
    built = tiny.built()
    (built.root / "environment.json").write_text('{"version": 1, "refer')
    with pytest.raises(Unavailable, match=r"is not finished\.\n    Go on with it: bakeoff env"):
        resolve("tiny", platform())
    assert cache.unfinished() == [built.root]


def test_a_platform_may_name_any_interpreter() -> None:
    found = resolve("tiny", platform(interpreter=sys.executable, environment={"TINY": "1"}))
    assert found.argv == (sys.executable,)
    assert found.env["TINY"] == "1"
    assert "pytest" in found.packages


def test_an_interpreter_that_is_not_there_says_who_named_it() -> None:
    with pytest.raises(Unavailable, match=r"/no/python \(named by here\) is no program"):
        resolve("tiny", platform(interpreter="/no/python"))


def test_a_framework_with_its_own_interpreter_says_how_to_name_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SINGA_PYTHON", raising=False)
    with pytest.raises(Unavailable, match=r"export SINGA_PYTHON="):
        resolve("singa", platform())
    monkeypatch.setenv("SINGA_PYTHON", sys.executable)
    assert resolve("singa", platform()).argv == (sys.executable,)


def test_a_missing_program_comes_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAFFE_BIN", "/no/caffe")
    with pytest.raises(Unavailable, match=r"CAFFE_BIN=/no/caffe: the adapter drives it\.\n    Set"):
        resolve("caffe", platform())


def test_another_build_of_a_driven_program_is_another_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caffe = tmp_path / "caffe"
    monkeypatch.setenv("CAFFE_BIN", str(caffe))
    fingerprints = []
    for build in ("1", "2", "1"):
        caffe.write_text(f"#!/bin/sh\necho caffe version 1.0.0  # build {build}\n")
        caffe.chmod(0o755)
        fingerprints.append(resolve("caffe", platform()).fingerprint)
    assert fingerprints[0] == fingerprints[2] != fingerprints[1]


@pytest.mark.slow
def test_a_library_of_a_driven_program_counts_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = needs.program("cc", package="gcc")
    (tmp_path / "main.c").write_text("int f(void); int main(void) { return f(); }")
    monkeypatch.setenv("CAFFE_BIN", str(tmp_path / "caffe"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    fingerprints = []
    for number in ("1", "2"):
        (tmp_path / "f.c").write_text(f"int f(void) {{ return {number}; }}")
        library = tmp_path / "libcaffe.so"
        subprocess.run([compiler, "-shared", "-o", library, tmp_path / "f.c"], check=True)
        if number == "1":
            words = [compiler, tmp_path / "main.c", "-o", tmp_path / "caffe", library]
            subprocess.run(words, check=True)
        fingerprints.append(resolve("caffe", platform()).fingerprint)
    assert fingerprints[0] != fingerprints[1]


def test_an_unknown_environment_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"Did you mean 'torch'\?"):
        resolve("pytroch", platform())


def test_a_module_set_makes_the_environment_of_workers(module_command: Path) -> None:
    found = resolve("tiny", platform(modules=["bin/1.0"]))
    assert found.argv == (str(module_command / "python3"),)
    assert found.env["TINY_ROOT"] == "two\nlines"
    assert "modules bin/1.0" in found.description


def test_the_fingerprint_follows_what_modules_change(
    module_command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = resolve("tiny", platform(modules=["bin/1.0"])).fingerprint
    assert resolve("tiny", platform(modules=["bin/1.0"])).fingerprint == one
    assert resolve("tiny", platform(modules=["bin/1.0", "other"])).fingerprint != one


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("absent", r"failed: .*Unable to locate a modulefile"),
        ("quiet", r"did not load quiet: .*ERROR:105"),
        ("x; rm -rf", r"is no module name"),
        ("$(id)", r"is no module name"),
    ],
)
def test_a_module_that_does_not_load_says_what_the_site_said(
    module_command: Path, name: str, complaint: str
) -> None:
    with pytest.raises((Unavailable, UsageError), match=f"(?s){complaint}"):
        resolve("tiny", platform(modules=[name]))


def test_a_machine_without_modules_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODULESHOME", "/nowhere")
    with pytest.raises(Unavailable, match=r"module"):
        resolve("tiny", platform(modules=["bin/1.0"]))


def test_isolation_keeps_what_is_not_pythons() -> None:
    kept = isolated({"HOME": "/h", "PYTHONHOME": "/x", "VIRTUAL_ENV": "/v", "PATH": os.defpath})
    assert kept == {"HOME": "/h", "PATH": os.defpath, "PYTHONNOUSERSITE": "1"}


def test_a_bare_python_needs_an_environment_for_a_format_s_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match=r"bakeoff env create 'null\[lmdb\]'"):
        resolve("null[lmdb]", load_platform("local"))
    assert resolve("null", load_platform("local")).argv[1:] == ("-s", "-S")


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("exit 0", r"is no Python: asked for its version, it said none"),
        ("echo hello", r"is no Python"),
        ("echo 5", r"is no Python"),
        ("echo 'libpython3.so: not found' >&2; exit 127", r"ended with 127: libpython3\.so: not"),
    ],
)
def test_a_named_program_that_is_no_python_is_refused(
    tmp_path: Path, script: str, complaint: str
) -> None:
    (tmp_path / "python").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "python").chmod(0o755)
    with pytest.raises(Unavailable, match=complaint):
        resolve("tiny", platform(interpreter=str(tmp_path / "python")))


def test_a_framework_s_variables_go_before_the_whole_platform_s() -> None:
    there = platform(interpreter=sys.executable, environment={"A": "its own", "PYTHONPATH": "/one"})
    all_ranks = {"A": "everybody's", "B": "everybody's", "PYTHONPATH": "/two::/one"}
    found = resolve("tiny", there.model_copy(update={"environment": all_ranks}))
    assert (found.env["A"], found.env["B"]) == ("its own", "everybody's")
    assert found.env["PYTHONPATH"] == "/one:/two"


def test_what_modules_set_for_python_stays_out_of_an_environment_of_bakeoff_s_own(
    module_command: Path,
) -> None:
    here = platform().model_copy(update={"modules": ("bin/1.0",)})
    found = resolve("null", here)
    assert found.env["TINY_ROOT"] == "two\nlines"
    assert "PYTHONHOME" not in found.env
