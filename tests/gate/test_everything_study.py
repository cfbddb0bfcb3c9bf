"""Hold `verify` without a study to all that is ready, and to saying what is not."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from harness.cli.verbs.verify import command
from harness.environments import worker_python
from harness.errors import Unavailable
from harness.gate.everything_study import study_of_all
from harness.platform.platform import load_platform


def ready(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def resolve(name: str, platform: object) -> None:
        if name not in names:
            raise Unavailable(name)

    monkeypatch.setattr(worker_python, "resolve", resolve)


def test_it_is_every_network_in_every_framework_that_is_ready(monkeypatch) -> None:
    ready(monkeypatch, "torch", "tensorflow@1.15", "null", "mpi", "torch@horovod")
    matrix = study_of_all(load_platform("local"))["matrix"]
    assert matrix["framework"] == ["tensorflow@1.15", "torch"]
    assert {"alexnet-caffe", "resnet50-v1", "cosmoflow", "tinycnn"} <= set(matrix["workload"])
    assert "all-reduce" not in matrix["workload"]


def test_without_any_framework_it_says_how_to_get_one(monkeypatch) -> None:
    ready(monkeypatch, "null")
    told = CliRunner().invoke(command, [])
    assert isinstance(told.exception, Unavailable)
    assert "bakeoff env create" in str(told.exception)
