"""Measure ceilings in a worker: each kernel that an adapter has, in windows of the timed loop."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.worker.contracts import Unsupported
from harness.worker.facts import ceilings, layers_alone
from harness.worker.job import Job, Span
from harness.worker.network.alone import multiplying
from harness.worker.network.layers import Dense
from harness.worker.place import Place, find
from harness.worker.scale import Scale
from tests.worker.paced import Log, Work
from workloads import gemm, gpt2_124m, tinycnn


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
        factors={"device": "cpu", "precision": "fp32", "threads": 2},
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

    adapter = SimpleNamespace(activity=activity)
    ceilings.measure(adapter, gemm.WORKLOAD, job, place(), log, log.clock)  # type: ignore[arg-type]
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

    adapter = SimpleNamespace(activity=activity)
    ceilings.measure(adapter, gemm.WORKLOAD, job, place(), log, log.clock)  # type: ignore[arg-type]
    told = {one["kernel"]: one["work"] for one in log.events("ceiling")}
    assert at(8) / 1e8 < ceilings.MEASURED_S < at(4) / 1e8 < 2 * ceilings.MEASURED_S
    assert told["gemm"] == at(8)


class Alone:
    """Give layers alone whose passes take so long, and remember which were asked for."""

    def __init__(self, log: Log, seconds: float) -> None:
        self._work = Work(log, seconds)
        self.asked: list[str] = []

    def examine(self, workload: Any, precision: str) -> Any:
        def layer(path: str, given: Any, gradient: Any, to_input: bool) -> Any:
            self.asked.append(path)
            return SimpleNamespace(
                forward=self._work.step, both=self._work.step, sync=self._work.sync
            )

        assert precision == "timed"
        return SimpleNamespace(load=lambda state: None, layer=layer)


def test_layers_that_multiply_are_stepped_alone_the_heaviest_first_each_shape_once(
    job: Job,
) -> None:
    log = Log()
    alone = Alone(log, 0.001)
    layers_alone.measure(alone, tinycnn.WORKLOAD, job, place(), log, log.clock)  # type: ignore[arg-type]
    assert alone.asked == [path for path in ("conv1", "conv1", "conv2", "fc") for _ in "fb"]
    told = log.events("ceiling")
    assert {(one["unit"], one["work"]) for one in told} == {("passes", 1.0)}
    assert {one["kernel"] for one in told} == {
        one.words for one in multiplying(tinycnn.WORKLOAD.network, 1, job.factors)
    }


def test_what_is_too_large_to_be_drawn_is_left_out() -> None:
    factors = {"device": "cpu", "precision": "fp32", "threads": None}
    few, many = (
        {one.site.site.path for one in multiplying(gpt2_124m.WORKLOAD.network, batch, factors)}
        for batch in (1, 16)
    )
    assert few - many == {"head"}


def test_layers_end_when_their_time_is_over(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers_alone, "SECONDS", 3.0)
    log = Log()
    alone = Alone(log, 1.0)
    layers_alone.measure(alone, tinycnn.WORKLOAD, job, place(), log, log.clock)  # type: ignore[arg-type]
    assert len(log.events("ceiling")) == 1


def test_a_layer_that_cannot_run_says_why_and_does_not_cost_the_others(job: Job) -> None:
    log = Log()
    alone = Alone(log, 0.001)

    def examine(workload: Any, precision: str) -> Any:
        if isinstance(workload.network.layers[0], Dense):
            raise Unsupported("no dense layers")
        return alone.examine(workload, precision)

    adapter: Any = SimpleNamespace(examine=examine)
    layers_alone.measure(adapter, tinycnn.WORKLOAD, job, place(), log, log.clock)  # type: ignore[arg-type]
    told = log.events("ceiling")
    assert [one["why"] for one in told if one["work"] is None] == ["no dense layers"] * 2
    assert len(told) == len(list(multiplying(tinycnn.WORKLOAD.network, 1, job.factors)))


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
