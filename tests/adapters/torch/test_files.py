"""Train on made files: whoever reads them, the losses are the same to the last bit."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.worker.job import Job, Span, text
from harness.worker.scale import Scale
from tests.needs import framework

pytestmark = pytest.mark.framework
ROOT = Path(__file__).resolve().parents[3]
SPEC = DataSetSpec("tiny-pictures", "npy", 256)


def events(
    folder: Path, workload: str, *, options: Mapping[str, Any] = {}, **factors: Any
) -> list[dict[str, Any]]:
    asked = {"device": "cpu", "precision": "fp32", "threads": 1, "layout": "default"}
    asked |= {"deterministic": True, "format": "npy", "cache": "cold"}
    asked |= {"shuffle": "file", "buffer_samples": 64, "reader_threads": 2, **factors}
    place = folder / "-".join(map(str, factors.values()))
    place.mkdir()
    job = Job(
        purpose="trial",
        cell_key="k",
        trial="trial-1",
        workload=workload,
        workload_module=f"workloads.{workload}",
        framework="torch",
        adapter_module="harness.worker.adapters.torch.adapter",
        environment="torch",
        strategy="none",
        scale=Scale(batch_per_device=16),
        factors=asked,
        options={"compile_mode": "default", "backend": "default", **options},
        warmup=Span(steps=3),
        until=Span(steps=20),
        seed=1,
        directory=str(place),
        paths={"data": str(folder / "set")},
    )
    (place / "job.json").write_text(text(job))
    command = [framework("torch"), "-m", "harness.worker", place / "job.json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, env=environment, check=not options, capture_output=True)
    return [json.loads(line) for line in (place / "events.0.jsonl").read_text().splitlines()]


def losses(said: list[dict[str, Any]]) -> dict[int, float]:
    """Two trials may choose other windows, so losses are told at other steps."""
    return {one["step"]: one["values"]["loss"] for one in said if one["event"] == "values"}


def test_pinned_memory_is_for_gpus(tmp_path: Path) -> None:
    create(SPEC, tmp_path / "set", doing=lambda _: None)
    options = {"pin_memory": True}
    (failed,) = [
        one
        for one in events(tmp_path, "tinycnn", options=options, reader="dataloader")
        if one["event"] == "failed"
    ]
    assert failed["kind"] == "unsupported"
    assert "torch sees none" in failed["message"]


def test_the_loss_does_not_depend_on_who_reads(tmp_path: Path) -> None:
    create(SPEC, tmp_path / "set", doing=lambda _: None)
    synchronous = losses(events(tmp_path, "tinycnn", reader="pread"))
    for factors in (
        {"reader": "async-thread", "buffers": 2},
        {"reader": "async-process", "buffers": 1},
        {"reader": "dataloader"},
    ):
        read = losses(events(tmp_path, "tinycnn", **factors))
        common = read.keys() & synchronous.keys()
        assert len(common) > 3
        assert {step: read[step] for step in common} == {step: synchronous[step] for step in common}
    assert len(set(synchronous.values())) > 3


def test_bytes_of_other_samples_in_the_data_loader_are_no_result(tmp_path: Path) -> None:
    create(SPEC, tmp_path / "set", doing=lambda _: None)
    files = sorted((tmp_path / "set" / "files").iterdir())
    held = [path.read_bytes() for path in files]
    for path, other in zip(files, held[::-1], strict=True):
        path.write_bytes(other)
    said = events(tmp_path, "tinycnn", options={"pin_memory": False}, reader="dataloader")
    (failed,) = [one for one in said if one["event"] == "failed"]
    assert "other bytes than those of sample" in failed["message"]
