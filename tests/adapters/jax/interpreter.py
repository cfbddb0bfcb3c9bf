"""This file finds the interpreter that has JAX and runs workers and checks in it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from harness.node import job as jobs
from tests import needs

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def jax_python() -> Path:
    """Find it: named in BAKEOFF_JAX_PYTHON, or the framework environment."""
    named = os.environ.get("BAKEOFF_JAX_PYTHON")
    return Path(named) if named else needs.framework("jax")


def checks(file: str) -> list[str]:
    """Name the checks that a file for the inside holds."""
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [name for name in names if name.startswith("test_")]


@cache
def answers(file: str) -> dict[str, str | None]:
    """Run all checks of a file in one process."""
    made = subprocess.run(
        [jax_python(), HERE / "inside.py", HERE / file],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    answer: dict[str, str | None] = json.loads(made.stdout)
    return answer


def work(directory: Path, **fields: Any) -> list[dict[str, Any]]:
    """Run one worker on a job and give its events."""
    directory.mkdir(parents=True, exist_ok=True)
    given: dict[str, Any] = {
        "purpose": "trial",
        "cell_key": "k",
        "trial": "t",
        "workload": "tinycnn",
        "workload_module": "workloads.tinycnn",
        "framework": "jax",
        "adapter_module": "harness.node.adapters.jax.adapter",
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
    path.write_text(jobs.text(jobs.Job(**given)), encoding="utf-8")
    subprocess.run(
        [jax_python(), "-m", "harness.node", path],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    lines = (directory / "events.0.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
