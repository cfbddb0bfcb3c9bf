"""This file examines a small network in real frameworks, from payloads that tests may change."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.data import folders, requests
from harness.node import job as jobs
from harness.node.job import Job, Span
from harness.node.tensors import Folder
from harness.run import findings, payload
from harness.run.findings import Finding
from harness.spec.framework import framework_info
from tests.gate.network import WORKLOAD
from tests.needs import framework

NETWORK = Path(__file__).parent / "network.py"
INSIDE = "workloads/gated.py"


@dataclass(frozen=True)
class Answer:
    """What was asked of a framework and what it made of it."""

    given: Folder
    made: Folder


def examine(
    name: str, given: Path, place: Path, changes: dict[str, tuple[str, str]], precision: str
) -> Folder:
    """Run one worker from a fresh payload in which some sources were changed."""
    source = place / "payload"
    payload.gather().copy(source)
    (source / INSIDE).write_text(NETWORK.read_text())
    for file, (old, new) in changes.items():
        text = (source / file).read_text()
        assert text.count(old) == 1, f"{file} has changed: {old}"
        (source / file).write_text(text.replace(old, new))
    span = Span(steps=1)
    info = framework_info(name)
    job = Job(
        purpose="examine",
        cell_key="gated",
        trial="gate",
        workload="gated",
        workload_module="workloads.gated",
        framework=name,
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
    ended = subprocess.run(
        [str(framework(name)), "-m", "harness.node", str(place / "job.json")],
        cwd=place,
        env={"PYTHONPATH": str(source), "PATH": os.environ["PATH"], "HOME": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return folders.open_folder(place / "made")


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """Make the reference once."""
    place = tmp_path_factory.mktemp("reference")
    requests.write_reference(WORKLOAD, place / "given")
    made = examine("torch", place / "given", place, {}, "fp32")
    return Answer(folders.open_folder(place / "given"), made)


Check = Callable[..., Finding]


@pytest.fixture
def semantics(reference: Answer, tmp_path: Path) -> Check:
    """Examine a framework, perhaps a changed one, in float64."""

    def check(name: str, changes: dict[str, tuple[str, str]], declared: tuple[str, ...] = ()):
        given = tmp_path / "given"
        requests.write_semantics(WORKLOAD, reference.given, reference.made, given)
        made = examine(name, given, tmp_path, changes, "fp32")
        return findings.semantics(WORKLOAD, reference.given, reference.made, made, declared)

    return check


@pytest.fixture
def timed(reference: Answer, tmp_path: Path) -> Check:
    """Examine a framework as it is timed."""

    def check(name: str, precision: str, changes: dict[str, tuple[str, str]]):
        own, asked = tmp_path / "reference", tmp_path / "asked"
        own.mkdir()
        requests.write_layers(WORKLOAD, reference.given, reference.made, precision, own / "given")
        expected = examine("torch", own / "given", own, {}, "fp32")
        given = folders.open_folder(own / "given")
        requests.write_timed(given, asked)
        made = examine(name, asked, tmp_path, changes, precision)
        return findings.timed(WORKLOAD, precision, given, expected, made)

    return check
