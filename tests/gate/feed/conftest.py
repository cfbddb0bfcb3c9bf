"""Examine what real frameworks feed their networks, from payloads that tests may change."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import plugins
from harness.gate.feed import examination
from harness.gate.result import GatePart
from harness.plan.cell import Cell
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.ranks.failure_reasons import Judgement
from harness.store.outcome import Ended
from harness.study.study import load_study
from harness.worker import job as jobs
from harness.worker.job import Job
from harness.worker.network.workload import Training
from tests.forked_workers import Workers
from tests.gate.conftest import Change, Subject, changed, run_in

STUDY = """
title = "Fed"
[matrix]
workload = "{workload}"
framework = "{framework}"
input = "files"
batch = 8
{factors}
[measure]
trials = 1
warmup = "3 steps"
until = "5 steps"
"""
LENT = ("PIL", "pillow.libs", "h5py", "h5py.libs", "lmdb")
"""Packages that environments may lack and that the tests run with, on the same Python."""

Fed = Callable[..., GatePart]


def cell_of(place: Path, framework: str, workload: str, **factors: Any) -> Cell:
    """Plan the one cell of a study that trains on files."""
    is_buffered = str(factors.get("reader")).startswith("async")
    if is_buffered or factors.get("shuffle") == "file":
        factors["buffer_samples"] = 64
    stated = "\n".join(f"{name} = {json.dumps(value)}" for name, value in factors.items())
    path = place / "study.toml"
    path.write_text(STUDY.format(workload=workload, framework=framework, factors=stated))
    platform = load_platform("local")
    binding = platform.binding.model_copy(update={"oversubscribe": True})
    plan = make_plan(load_study(str(path)), platform.model_copy(update={"binding": binding}))
    (cell,) = plan.cells
    return cell


@pytest.fixture(scope="session")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lend packages for formats and pictures to environments that lack them."""
    folder = tmp_path_factory.mktemp("lent")
    for name in LENT:
        found = importlib.util.find_spec("h5py" if name.startswith("h5py") else "PIL")
        assert found is not None
        assert found.origin is not None
        there = Path(found.origin).parents[1] / name
        if there.exists():
            (folder / name).symlink_to(there)
    return folder


@pytest.fixture(scope="session")
def fed(workers: Workers, lent: Path, tmp_path_factory: pytest.TempPathFactory) -> Fed:
    """Examine the feed of one cell; ``changes`` are made in its payload."""

    def run(
        framework: str,
        workload: str = "tinycnn",
        changes: Mapping[str, Change] | None = None,
        **factors: Any,
    ) -> GatePart:
        place = tmp_path_factory.mktemp("fed")
        cell = cell_of(place, framework, workload, **factors)
        source = place / "payload"
        changed(source, changes or {})
        count = iter(range(9))

        def go(job: Job) -> Judgement:
            own = place / f"job-{next(count)}"
            own.mkdir()
            job = replace(job, directory=str(own))
            (own / "job.json").write_text(jobs.text(job))
            try:
                run_in(workers, Subject(framework, beside=lent), source, own)
            except AssertionError:
                lines = (own / "events.0.jsonl").read_text().splitlines()
                return Judgement(Ended.FAILED, str(json.loads(lines[-1])["message"]))
            return Judgement(Ended.OK, "")

        trained = plugins.workload(cell.workload)
        assert isinstance(trained, Training)
        return examination.examine(cell, trained, place, go)

    return run
