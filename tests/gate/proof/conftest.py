"""Run whole trials of real frameworks, from payloads that tests may change, and judge them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from harness.gate.proof import judging, request
from harness.gate.proof.judging import Proved
from harness.gate.tensors import folders
from harness.store.contained import Contained
from harness.study.framework import framework_info
from harness.worker import job as jobs
from harness.worker.job import Job, Span
from harness.worker.network.precisions import precision_of
from harness.worker.scale import Scale
from tests.forked_workers import Workers
from tests.gate.conftest import Change, Subject, changed, run_in

BATCH = 16
SEEDS = range(1, 11)
"""Of clean networks: each draws another start, another batch and other masks."""
_BARS = {"fp32": 1e-3, "bf16": 0.1, "bf16-pure": 0.1}
"""Beyond which a clean network's error is a fault; in bf16 1 less the cosine of a gradient."""

Given = Callable[..., Path]
Prove = Callable[..., Proved]


def bar(precision: str) -> float:
    """Say how far off a clean network's gradients may be."""
    return _BARS[precision]


@pytest.fixture
def clean(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Say of a clean network how far off it was; ``make mutations`` reads what is said last."""

    def note(way: str, network: str, seed: int, precision: str, error: float | None = None) -> None:
        told = {"way": way, "network": network, "seed": seed, "error": error}
        for name, one in {**told, "bar": f"{bar(precision):.0e}"}.items():
            record_property(name, one)

    return note


@pytest.fixture(scope="session")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    """Make what trials of a network start from, once for each seed and what weights are held in."""

    @cache
    def made(network: ModuleType, seed: int, held: str = "fp32") -> Path:
        place = tmp_path_factory.mktemp("given")
        request.write_given(network.WORKLOAD, BATCH, seed, place, held=held)
        return place

    return made


@pytest.fixture(scope="session")
def places() -> list[Path]:
    """Keep where trials ran, in order."""
    return []


@pytest.fixture(scope="session")
def prove(
    workers: Workers, given: Given, places: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Prove:
    """Run a trial from a payload in which some sources were changed, and judge its updates."""

    def run(
        name: str,
        network: ModuleType,
        changes: Mapping[str, Change] | None = None,
        *,
        precision: str = "fp32",
        seed: int = 1,
        compiled: bool = False,
        start: int | None = None,
        accumulate: int = 1,
        recompute: bool = False,
    ) -> Proved:
        place = tmp_path_factory.mktemp("trial")
        held = precision_of(precision).of_weights
        begin = given(network, seed if start is None else start, held)
        places.append(place)
        source = place / "payload"
        changed(source, changes or {}, network)
        job = job_of(name, place, begin, precision, seed, compiled=compiled)
        how = {"accumulate": accumulate, "recompute": recompute}
        job = dataclasses.replace(job, factors={**job.factors, **how})
        (place / "job.json").write_text(jobs.text(job))
        run_in(workers, Subject(name, changes or {}), source, place)
        asked = folders.open_folder(begin)
        made = folders.open_made(Contained(place), place / "proved")
        declared = [one.tensors for one in framework_info(name).differs]
        return judging.judge(network.WORKLOAD, precision, asked, made, declared)

    return run


def job_of(
    name: str, place: Path, start: Path, precision: str, seed: int, *, compiled: bool
) -> Job:
    """Make the job of a trial that is examined."""
    info = framework_info(name)
    return Job(
        purpose="trial",
        cell_key="proved",
        trial="trial-1",
        workload="gated",
        workload_module="workloads.gated",
        framework=name,
        adapter_module=info.module,
        environment=name,
        strategy="none",
        scale=Scale(batch_per_device=BATCH),
        factors={
            "device": "cpu",
            "precision": precision,
            "layout": "default",
            "threads": 1,
            "compile": compiled or info.default("compile"),
        },
        options={},
        warmup=Span(steps=3),
        until=Span(steps=12),
        seed=seed,
        directory=str(place),
        paths={"proof": str(start), "proved": str(place / "proved")},
    )
