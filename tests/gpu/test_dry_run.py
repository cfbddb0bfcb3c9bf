"""A GPU day rehearsed on CPUs: every step, against stand-ins for the driver's libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.gpu.table import STEPS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIBRARIES = {
    "libnvidia-ml.so.1": HERE.parent / "collect" / "nvml_stub.c",
    "libcuda.so.1": HERE / "cuda_stub.c",
}

QUICK = tuple(step.name for step in STEPS if step.name != "ceilings-kernels")
"""That one has a test of its own, as its trials take half a minute of processor."""
Rehearse = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the libraries and `nvidia-smi`, into one folder."""
    folder = tmp_path_factory.mktemp("stand-ins")
    compiler = needs.program("cc", "gcc", package="gcc")
    for name, source in LIBRARIES.items():
        command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", folder / name]
        subprocess.run([*command, source], check=True)
    program = folder / "nvidia-smi"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "fake_nvidia_smi.py"} "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.fixture
def rehearse(stand_ins: Path, tmp_path: Path) -> Rehearse:
    def start(python: Path | str, *only: str, **environment: str) -> tuple[int, dict[str, Any]]:
        narrower = ["--only", ",".join(only)] if only else []
        path = os.pathsep.join((str(stand_ins), os.environ["PATH"]))
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.gpu", "--dry-run"),
                *("--python", str(python), "--out", str(tmp_path / "day"), *narrower),
            ],
            cwd=ROOT,
            env={**os.environ, "PATH": path, "LD_LIBRARY_PATH": str(stand_ins), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr
        told = json.loads((tmp_path / "day" / "summary.json").read_text(encoding="utf-8"))
        steps = {name: one for name, one in told["steps"].items() if one is not None}
        return done.returncode, steps

    return start


@pytest.mark.framework
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_step_that_is_possible_is_done_once(rehearse: Rehearse, tmp_path: Path) -> None:
    code, steps = rehearse(needs.framework("torch"), *QUICK)
    assert {name: one["state"] for name, one in steps.items()} == {
        "doctor": "ok",
        "probe": "ok",
        "nvml": "ok",
        "observer": "ok",
        "gate-torch": "ok",
        "gate-jax": "not possible",
        "ceilings-device": "not possible",
        "study-frameworks": "ok",
        "study-transformers": "ok",
        "figures": "ok",
        "windows-torch": "ok",
        "windows-jax": "not possible",
        "attribution-torch": "ok",
        "attribution-jax": "not possible",
        "plain-torch": "ok",
        "plain-jax": "not possible",
    }
    assert code == 0
    assert "No module named 'jax'" in steps["gate-jax"]["reason"]
    assert any("backward in all" in line for line in steps["attribution-torch"]["lines"])
    files = {path.name for path in (tmp_path / "day").iterdir() if path.is_file()}
    assert files == {
        *("summary.json", "summary.md", "evidence.tar.gz"),
        *("frameworks.html", "frameworks.run.tar.gz"),
        *("transformers.html", "transformers.run.tar.gz", "figures.tar.gz"),
    }
    again = rehearse(needs.framework("torch"), "nvml", "study-frameworks")[1]
    assert again == steps


@pytest.mark.framework
@pytest.mark.long
@pytest.mark.timeout(600)
def test_ceilings_are_measured_and_told(rehearse: Rehearse) -> None:
    # beside the stand-in for NVML nothing would count as measured
    code, steps = rehearse(needs.framework("torch"), "ceilings-kernels", LD_LIBRARY_PATH="")
    assert (code, steps["ceilings-kernels"]["state"]) == (0, "ok")
    assert any(line.startswith("cpu-gemm-fp32: ") for line in steps["ceilings-kernels"]["lines"])


@pytest.mark.framework
@pytest.mark.slow
def test_windows_around_a_framework_without_events_are_held_to_the_driver(
    rehearse: Rehearse,
) -> None:
    code, steps = rehearse(needs.framework("jax"), "windows-jax")
    assert code == 0
    lines = steps["windows-jax"]["lines"]
    assert any("no CUDA events" in line for line in lines)
    assert any("after sync() the device went on for" in line for line in lines)


@pytest.mark.slow
def test_a_reading_that_differs_fails_its_step_and_no_other(rehearse: Rehearse) -> None:
    wrong = {"FAKE_SMI_WRONG": "temperature.gpu=60", "FAKE_SMI_UNKNOWN": "memory.reserved"}
    code, steps = rehearse(sys.executable, "nvml", "probe", "windows-torch", **wrong)
    assert code == 1
    assert steps["probe"]["state"] == "ok"
    assert steps["nvml"]["state"] == "failed"
    assert "temperature: 0 of" in steps["nvml"]["reason"]
    assert steps["windows-torch"]["state"] == "not possible"
    assert "idle: this nvidia-smi does not know memory.reserved" in steps["nvml"]["lines"]
    assert len(steps["nvml"]["faults"]) == 2, "the temperature of both GPUs, and nothing else"
    code, steps = rehearse(sys.executable, "nvml")
    assert (code, steps["nvml"]["state"]) == (0, "ok"), "what failed is done again"
    assert rehearse("sh", "nvml")[0] == 2, "a folder holds the day of one interpreter"
