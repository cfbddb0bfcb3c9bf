"""Start torch and JAX from what the host gives: both read back the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.gate.proof import request
from tests.adapters.interpreter import told, work
from workloads.tinycnn import WORKLOAD

pytestmark = pytest.mark.framework
BATCH = 4


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("given")
    request.write_given(WORKLOAD, BATCH, 1, place)
    return place


def started(name: str, place: Path, given: Path, **how: Any) -> dict[str, Any]:
    paths = {"proof": str(given), **how.pop("paths", {})}
    events = work(name, place, factors={"batch": BATCH, "threads": 1, **how}, paths=paths)
    assert told(events, "finished")
    start: dict[str, Any] = told(events, "facts")["facts"]["start"]
    return start


@pytest.mark.long
@pytest.mark.parametrize("name", ["tensorflow", "keras", "tinygrad"])
def test_others_start_from_the_same_too(name: str, tmp_path: Path, given: Path) -> None:
    assert started(name, tmp_path / name, given) == started("torch", tmp_path / "torch", given)


def test_torch_and_jax_start_from_the_same_weights_and_batch(tmp_path: Path, given: Path) -> None:
    torch, jax = (started(name, tmp_path / name, given) for name in ("torch", "jax"))
    assert torch == jax
    assert torch["differs"] is None
    assert torch["batch"] is not None


@pytest.mark.parametrize(
    "name", ["torch", "jax", pytest.param("tensorflow", marks=pytest.mark.long)]
)
def test_what_reads_files_is_fed_other_batches_with_their_targets(
    name: str, tmp_path: Path, given: Path
) -> None:
    data = tmp_path / "set"
    create(DataSetSpec("tiny-pictures", "raw", 64), data, doing=lambda _: None)
    how = {"cache": "warm", "shuffle": "file", "format": "raw", "prefetch": 1}
    how |= {"reader": "threads", "reader_threads": 1}
    start = started(name, tmp_path / name, given, paths={"data": str(data)}, **how)
    assert start["differs"] is None
