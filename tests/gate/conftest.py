"""This file examines a small network in real frameworks, from payloads that tests may change."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest

from harness.data import folders, requests
from harness.node import job as jobs
from harness.node.job import Job, Span
from harness.node.tensors import Folder
from harness.node.workload import Training
from harness.run import findings, payload
from harness.run.findings import Finding
from harness.spec.framework import framework_info
from tests.gate import network as gated
from tests.needs import framework

INSIDE = "workloads/gated.py"


@dataclass(frozen=True)
class Answer:
    """What was asked of a framework and what it made of it."""

    given: Folder
    made: Folder


@dataclass(frozen=True)
class Subject:
    """Who is examined: a framework, what is wrong with its sources, and where it runs."""

    name: str
    changes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    python: Path | None = None
    """Where a stand-in runs; None is the framework's own environment."""
    beside: Path | None = None
    """The stand-in's folder."""
    env: Mapping[str, str] = field(default_factory=dict)


def examine(
    subject: Subject, network: ModuleType, given: Path, place: Path, precision: str = "fp32"
) -> Folder:
    """Run one worker from a fresh payload in which some sources were changed."""
    source = place / "payload"
    payload.gather().copy(source)
    (source / INSIDE).write_text(Path(network.__file__ or "").read_text())
    for file, (old, new) in subject.changes.items():
        text = (source / file).read_text()
        assert text.count(old) == 1, f"{file} has changed: {old}"
        (source / file).write_text(text.replace(old, new))
    span = Span(steps=1)
    info = framework_info(subject.name)
    job = Job(
        purpose="examine",
        cell_key="gated",
        trial="gate",
        workload="gated",
        workload_module="workloads.gated",
        framework=subject.name,
        adapter_module=info.module,
        strategy="none",
        factors={
            "device": "cpu",
            "precision": precision,
            "layout": "default",
            "threads": 1,
            "compile": info.default("compile"),
        },
        options={},
        warmup=span,
        until=span,
        seed=0,
        directory=str(place),
        paths={"given": str(given), "made": str(place / "made")},
    )
    (place / "job.json").write_text(jobs.text(job))
    path = os.pathsep.join(str(one) for one in (source, subject.beside) if one is not None)
    ended = subprocess.run(
        [str(subject.python or framework(subject.name)), "-m", "harness.node", place / "job.json"],
        cwd=place,
        env={"PYTHONPATH": path, "PATH": os.environ["PATH"], "HOME": str(place), **subject.env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return folders.open_folder(place / "made")


References = Callable[[ModuleType], Answer]


@pytest.fixture(scope="session")
def references(tmp_path_factory: pytest.TempPathFactory) -> References:
    """Make each network's reference once."""
    kept: dict[str, Answer] = {}

    def reference(network: ModuleType) -> Answer:
        if network.__name__ not in kept:
            place = tmp_path_factory.mktemp("reference")
            requests.write_reference(network.WORKLOAD, place / "given")
            made = examine(Subject("torch"), network, place / "given", place)
            kept[network.__name__] = Answer(folders.open_folder(place / "given"), made)
        return kept[network.__name__]

    return reference


Layers = Callable[[ModuleType, str], Answer]


@pytest.fixture(scope="session")
def layers(references: References, tmp_path_factory: pytest.TempPathFactory) -> Layers:
    """Make the reference of each layer alone once."""
    kept: dict[tuple[str, str], Answer] = {}

    def reference(network: ModuleType, precision: str) -> Answer:
        key = (network.__name__, precision)
        if key not in kept:
            whole, place = references(network), tmp_path_factory.mktemp("layers")
            requests.write_layers(
                network.WORKLOAD, whole.given, whole.made, precision, place / "given"
            )
            made = examine(Subject("torch"), network, place / "given", place)
            kept[key] = Answer(folders.open_folder(place / "given"), made)
        return kept[key]

    return reference


Check = Callable[..., Finding]


@pytest.fixture
def semantics(references: References, tmp_path: Path) -> Check:
    """Examine a framework, perhaps a changed one, in float64."""

    def check(
        name: str, changes: dict[str, tuple[str, str]], declared: tuple[str, ...] = ()
    ) -> Finding:
        given, reference = tmp_path / "given", references(gated)
        workload: Training = gated.WORKLOAD
        requests.write_semantics(workload, reference.given, reference.made, given)
        made = examine(Subject(name, changes), gated, given, tmp_path)
        return findings.semantics(workload, reference.given, reference.made, made, declared)

    return check


@pytest.fixture
def timed(layers: Layers, tmp_path: Path) -> Check:
    """Examine a framework as it is timed."""

    def check(subject: Subject, precision: str = "fp32", network: ModuleType = gated) -> Finding:
        asked, reference = tmp_path / "asked", layers(network, precision)
        requests.write_timed(reference.given, asked)
        made = examine(subject, network, asked, tmp_path, precision)
        return findings.timed(network.WORKLOAD, precision, reference.given, reference.made, made)

    return check
