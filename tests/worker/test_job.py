"""Write jobs and read them back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.worker.job import Job, Span, read, text
from harness.worker.scale import Scale

JOB = Job(
    purpose="trial",
    cell_key="9f3a",
    trial="trial-1",
    workload="tinycnn",
    workload_module="workloads.tinycnn",
    framework="null",
    adapter_module="harness.worker.adapters.null",
    environment="null",
    strategy="none",
    scale=Scale(batch_per_device=16),
    factors={"threads": 2},
    options={"fused": True},
    warmup=Span(steps=20),
    until=Span(seconds=5.0),
    seed=3,
    directory="/somewhere",
)


def test_a_job_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(text(JOB), encoding="utf-8")
    assert read(str(path)) == JOB


def test_a_job_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps({**json.loads(text(JOB)), "version": 99}), encoding="utf-8")
    with pytest.raises(ValueError, match="job version 99 is not 3"):
        read(str(path))


@pytest.mark.parametrize("ends", [{}, {"steps": 3, "seconds": 1.0}])
def test_a_span_has_one_end(ends: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="a span counts steps or seconds"):
        Span(**ends)
