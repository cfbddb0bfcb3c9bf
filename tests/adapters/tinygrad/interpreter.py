"""This file runs workers in the interpreters of tinygrad and of the gate's reference."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from harness.node import job as jobs
from tests import needs

ROOT = Path(__file__).resolve().parents[3]


def work(directory: Path, framework: str = "tinygrad", **fields: Any) -> list[dict[str, Any]]:
    """Run one worker on a job and give its events."""
    directory.mkdir(parents=True, exist_ok=True)
    given: dict[str, Any] = {
        "purpose": "trial",
        "cell_key": "k",
        "trial": "t",
        "workload": "tinycnn",
        "workload_module": "workloads.tinycnn",
        "framework": framework,
        "adapter_module": f"harness.node.adapters.{framework}.adapter",
        "strategy": "none",
        "factors": {"batch": 8},
        "options": {},
        "warmup": jobs.Span(steps=1),
        "until": jobs.Span(steps=20),
        "seed": 7,
        "directory": str(directory),
        **fields,
    }
    path = directory / "job.json"
    path.write_text(jobs.text(jobs.Job(**given)), encoding="utf-8")
    subprocess.run(
        [needs.framework(framework), "-m", "harness.node", path],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    lines = (directory / "events.0.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def told(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Give the last event of a kind."""
    found = [event for event in events if event["event"] == kind]
    assert found, events
    return found[-1]
