"""Run workers and check in the interpreter that has a framework."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from harness.worker import job as jobs
from tests import needs
from tests.forked_workers import Workers
from tests.scales import parted

ROOT = Path(__file__).resolve().parents[2]
QUIET = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads that spin while they wait take the core of the test beside this one."""


def python(environment: str) -> Path:
    """Find the interpreter of a framework environment."""
    if environment == "tensorflow@1.15":
        needs.python37()  # which the environment is built on, and the project cannot install
    return needs.framework(environment)


def checks(file: Path) -> list[str]:
    """Name the checks that a file for the inside holds."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [name for name in names if name.startswith("test_")]


@cache
def answers(environment: str, *files: Path) -> dict[str, dict[str, str | None]]:
    """Run all checks of some files in one process, as importing a framework takes longest."""
    made = subprocess.run(
        [python(environment), "-m", "tests.adapters.inside", *files],
        cwd=ROOT,
        env={**QUIET, **os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    answer: dict[str, dict[str, str | None]] = json.loads(made.stdout.splitlines()[-1])
    return answer


def work(environment: str, directory: Path, **fields: Any) -> list[dict[str, Any]]:
    """Run one worker of a built environment on a job and give its events."""
    given = {"environment": environment, **fields}
    return work_with(python(environment), environment.partition("@")[0], directory, **given)


def work_with(
    program: Path, framework: str, directory: Path, **fields: Any
) -> list[dict[str, Any]]:
    """Run one worker by an interpreter on a job and give its events."""
    path = written(framework, directory, fields)
    subprocess.run(
        [program, "-m", "harness.worker", path],
        cwd=directory,
        env={**QUIET, **os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    return events_of(directory)


def forked(
    workers: Workers, framework: str, directory: Path, **fields: Any
) -> list[dict[str, Any]]:
    """Run one worker that finishes, where its framework is imported already; give its events."""
    written(framework, directory, fields)
    workers.run(framework, directory, [ROOT])
    return events_of(directory)


def written(framework: str, directory: Path, fields: dict[str, Any]) -> Path:
    """Write the job of a worker: what is not named is that of a short trial of tinycnn."""
    directory.mkdir(parents=True, exist_ok=True)
    given: dict[str, Any] = {
        "purpose": "trial",
        "cell_key": "k",
        "trial": "t",
        "workload": "tinycnn",
        "workload_module": "workloads.tinycnn",
        "framework": framework,
        "adapter_module": f"harness.worker.adapters.{framework}.adapter",
        "environment": framework,
        "strategy": "none",
        "factors": {"batch": 8},
        "options": {},
        "warmup": jobs.Span(steps=1),
        "until": jobs.Span(steps=40),
        "seed": 7,
        "directory": str(directory),
        **fields,
    }
    path = directory / "job.json"
    given["scale"], given["factors"] = parted(given["factors"])
    path.write_text(jobs.text(jobs.Job(**given)), encoding="utf-8")
    return path


def events_of(directory: Path, rank: int = 0) -> list[dict[str, Any]]:
    """Read what a rank said."""
    lines = (directory / f"events.{rank}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def told(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Give the last event of a kind."""
    found = [event for event in events if event["event"] == kind]
    assert found, events
    return found[-1]


def losses(events: list[dict[str, Any]]) -> list[float]:
    """Give the losses that were read."""
    return [event["values"]["loss"] for event in events if event["event"] == "values"]
