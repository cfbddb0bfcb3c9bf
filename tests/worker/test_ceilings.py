"""Measure ceilings in a worker: each kernel that an adapter has, in windows of the timed loop."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.worker.contracts import Unsupported
from harness.worker.facts import ceilings
from harness.worker.job import Job, Span
from harness.worker.place import Place, find
from harness.worker.scale import Scale
from tests.worker.paced import Log, Work
from workloads import gemm


@pytest.fixture
def job(tmp_path: Path) -> Job:
    span = Span(steps=1)
    return Job(
        purpose="ceilings",
        cell_key="k",
        trial="ceilings",
        workload="tinycnn",
        workload_module="workloads.tinycnn",
        framework="tiny",
        adapter_module="tiny",
        environment="tiny",
        strategy="none",
        scale=Scale(batch_per_device=1),
        factors={"device": "cpu"},
        options={},
        warmup=span,
        until=span,
        seed=1,
        directory=str(tmp_path),
    )


def place() -> Place:
    return find({})


def test_a_kernel_that_an_adapter_lacks_does_not_cost_the_others(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ceilings, "UNTIL", Span(steps=3))
    log = Log()

    def activity(workload: Any, feed: Any, options: Any) -> Any:
        if workload.kernel == "convolution":
            raise Unsupported("it has no convolution")
        work: Any = Work(log, 0.001, None)
        work.units = {workload.unit: 7.0}
        return work

    ceilings.measure(SimpleNamespace(activity=activity), job, place(), log, log.clock)  # type: ignore[arg-type]
    told = [(one["kernel"], one["work"], one["why"]) for one in log.events("ceiling")]
    assert told == [
        ("gemm", 7.0, ""),
        ("convolution", None, "it has no convolution"),
        ("triad", 7.0, ""),
    ]
    assert sum(one["steps"] for one in log.windows("measure")) == 6


def test_a_kernel_of_minutes_is_measured_at_a_size_whose_steps_fit(job: Job) -> None:
    log = Log()

    def activity(workload: Any, feed: Any, options: Any) -> Any:
        operations = float(workload.size**3)
        work: Any = Work(log, operations / 1e8)
        work.units = {workload.unit: operations}
        return work

    def at(part: int) -> float:
        return float((gemm.WORKLOAD.size // part) ** 3)

    ceilings.measure(
        SimpleNamespace(activity=activity),
        job,
        place(),
        log,  # type: ignore[arg-type]
        log.clock,
    )
    told = {one["kernel"]: one["work"] for one in log.events("ceiling")}
    assert at(8) / 1e8 < ceilings.MEASURED_S < at(4) / 1e8 < 2 * ceilings.MEASURED_S
    assert told["gemm"] == at(8)


def test_last_level_caches_that_cores_share_count_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = (("1", "Instruction", "32K", "own"), ("1", "Data", "32K", "own"))
    for cpu, shared in ((0, "0-1"), (1, "0-1"), (2, "2")):
        every = (*levels, ("3", "Unified", "8192K", shared))
        for number, (level, kind, size, whose) in enumerate(every):
            folder = tmp_path / f"cpu{cpu}" / "cache" / f"index{number}"
            folder.mkdir(parents=True)
            told = {"level": level, "type": kind, "size": size, "shared_cpu_list": whose}
            for name, text in told.items():
                (folder / name).write_text(f"{text}\n")
    monkeypatch.setattr(ceilings, "CACHES", str(tmp_path / "cpu{}" / "cache"))
    assert ceilings.last_level_bytes([0, 1]) == 8 << 20
    assert ceilings.last_level_bytes([0, 1, 2]) == 16 << 20
    assert ceilings.last_level_bytes([7]) is None
