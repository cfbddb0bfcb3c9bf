"""Examine a small network in real frameworks, from payloads that tests may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.gate import layers as layer_checks
from harness.gate import reference
from harness.gate import semantics as semantic_checks
from harness.gate.reference import GateReference
from harness.gate.semantics import TensorComparison
from harness.gate.tensors import folders, requests
from harness.study.framework import framework_info
from harness.worker import job as jobs
from harness.worker.gate.tensors import Folder
from harness.worker.job import Job, Span
from harness.worker.network.shapes import sites
from harness.worker.network.workload import Training
from harness.worker.scale import Scale
from tests import payloads
from tests.forked_workers import Workers
from tests.gate import network as gated

INSIDE = "workloads/gated.py"
QUICKLY = {
    "jax": {
        "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false",
    }
}
"""How a program with a planted fault is compiled in half the time. What is found of it does not
depend on that; how far off clean networks are does, so they are compiled as trials' are."""
Change = tuple[str, str]
"""What stands in a source once, and what a mistake puts there."""


@dataclass(frozen=True)
class Answer:
    """What was asked of a framework and what it made of it."""

    given: Folder
    made: Folder


@dataclass(frozen=True)
class Subject:
    """Who is examined: a framework, what is wrong with its sources, and where it runs."""

    name: str
    changes: Mapping[str, Change | Sequence[Change]] = field(default_factory=dict)
    stands_in: str | None = None
    """The framework in whose environment a stand-in runs."""
    beside: Path | None = None
    """The stand-in's folder."""
    env: Mapping[str, str] = field(default_factory=dict)
    compiled: bool = False
    """Whether it compiles though that is not its default."""
    accumulate: int = 1
    """How many micro-batches make a step."""
    recompute: bool = False
    """Whether its blocks are computed twice."""


Planted = Callable[..., None]


@pytest.fixture
def planted(record_property: Callable[[str, object], None]) -> Planted:
    """Say of a planted fault what caught it, and as what it was named; ``make mutations`` reads it.

    None: nothing caught it.
    """

    def note(framework: str, fault: str, by: str, named: str | None) -> None:
        for name, one in (("framework", framework), ("fault", fault), ("by", by), ("named", named)):
            record_property(name, one)

    return note


def changed(
    source: Path,
    changes: Mapping[str, Change | Sequence[Change]],
    network: ModuleType | None = None,
) -> None:
    """Lay out a payload, with a network in it, in which some sources are changed."""
    payloads.lay_out(source)
    if network is not None:
        (source / INSIDE).write_text(Path(network.__file__ or "").read_text())
    for file, wanted in changes.items():
        text = (source / file).read_text()
        for old, new in _each(wanted):
            assert text.count(old) == 1, f"{file} has changed: {old}"
            text = text.replace(old, new)
        (source / file).write_text(text)


def _each(changes: Change | Sequence[Change]) -> list[Change]:
    if isinstance(changes, tuple) and isinstance(changes[0], str):
        old, new = changes
        return [(str(old), str(new))]
    return [one for one in changes if isinstance(one, tuple)]


def run_in(workers: Workers, subject: Subject, source: Path, place: Path) -> None:
    """Run the job of a place to its end, from a payload."""
    path = [one for one in (source, subject.beside) if one is not None]
    quickly = QUICKLY.get(subject.name, {}) if subject.changes else {}
    workers.run(subject.stands_in or subject.name, place, path, {**quickly, **subject.env})


Examine = Callable[..., Answer]


@pytest.fixture(scope="session")
def examine(workers: Workers, tmp_path_factory: pytest.TempPathFactory) -> Examine:
    """Examine in a fresh worker, from a fresh payload in which some sources were changed."""

    def run(
        subject: Subject,
        network: ModuleType,
        write: Callable[[Path], None],
        precision: str = "fp32",
    ) -> Answer:
        place = tmp_path_factory.mktemp("examined")
        write(place / "given")
        source = place / "payload"
        changed(source, subject.changes, network)
        (place / "job.json").write_text(jobs.text(_job(subject, place, precision)))
        run_in(workers, subject, source, place)
        return Answer(*(folders.open_folder(place / name) for name in ("given", "made")))

    return run


def _job(subject: Subject, place: Path, precision: str) -> Job:
    span = Span(steps=1)
    info = framework_info(subject.name)
    return Job(
        purpose="examine",
        cell_key="gated",
        trial="gate",
        workload="gated",
        workload_module="workloads.gated",
        framework=subject.name,
        adapter_module=info.module,
        environment=subject.name,
        strategy="none",
        scale=Scale(),
        factors={
            "device": "cpu",
            "precision": precision,
            "layout": "default",
            "threads": 1,
            "compile": subject.compiled or info.default("compile"),
            "accumulate": subject.accumulate,
            "recompute": subject.recompute,
        },
        options={},
        warmup=span,
        until=span,
        seed=0,
        directory=str(place),
        paths={name: str(place / name) for name in ("given", "made")},
    )


References = Callable[[ModuleType], GateReference]
Layers = Callable[[ModuleType, str], GateReference]
Check = Callable[..., TensorComparison]


@pytest.fixture(scope="session")
def references(tmp_path_factory: pytest.TempPathFactory) -> References:
    """Make each network's reference once."""

    @cache
    def made(network: ModuleType) -> GateReference:
        return reference.make_semantics(network.WORKLOAD, tmp_path_factory.mktemp("reference"))

    return made


@pytest.fixture(scope="session")
def layers(references: References, tmp_path_factory: pytest.TempPathFactory) -> Layers:
    """Make the reference of each layer alone once."""

    @cache
    def made(network: ModuleType, precision: str) -> GateReference:
        place = tmp_path_factory.mktemp("layers")
        return reference.make_layers(network.WORKLOAD, place, references(network), precision)

    return made


@pytest.fixture(scope="session")
def semantics(references: References, examine: Examine) -> Check:
    """Examine a framework, perhaps a changed one, in float64; the same one only once."""
    made: dict[str, Folder] = {}

    def check(
        name: str,
        changes: dict[str, tuple[str, str]],
        declared: tuple[str, ...] = (),
        compiled: bool = False,
        network: ModuleType = gated,
        **how: Any,
    ) -> TensorComparison:
        right = references(network)
        key = f"{name} {changes} {compiled} {network.__name__} {how}"

        def write(to: Path) -> None:
            requests.write_semantics(network.WORKLOAD, right.given, right.made, to)

        if key not in made:
            subject = Subject(name, changes, compiled=compiled, **how)
            made[key] = examine(subject, network, write).made
        return semantic_checks.semantics(
            network.WORKLOAD, right.given, right.made, made[key], declared
        )

    return check


@pytest.fixture(scope="session")
def timed(layers: Layers, examine: Examine) -> Check:
    """Examine a framework as it is timed."""

    def check(
        subject: Subject, precision: str = "fp32", network: ModuleType = gated
    ) -> TensorComparison:
        return layer_checks.timed(*_as_timed(layers, examine, subject, precision, network))

    return check


@pytest.fixture(scope="session")
def timed_layers(layers: Layers, examine: Examine) -> Callable[..., dict[str, str]]:
    """Examine a framework as it is timed; give every layer that differs, and how."""

    def check(subject: Subject, precision: str, network: ModuleType) -> dict[str, str]:
        asked = _as_timed(layers, examine, subject, precision, network)
        walked = sites(asked[0].network)
        found = {site.path: layer_checks.layer(site, *asked[1:]) for site in walked}
        return {path: one.differs for path, one in found.items() if one.differs is not None}

    return check


def _as_timed(
    layers: Layers, examine: Examine, subject: Subject, precision: str, network: ModuleType
) -> tuple[Training, str, Folder, Folder, Folder, list[str]]:
    right = layers(network, precision)

    def write(to: Path) -> None:
        requests.write_timed(right.given, to)

    made = examine(subject, network, write, precision).made
    declared = [one.tensors for one in framework_info(subject.name).differs]
    return network.WORKLOAD, precision, right.given, right.made, made, declared
