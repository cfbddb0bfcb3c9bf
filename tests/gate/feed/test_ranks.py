"""Ranks that train together read shares of their own, in real processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness import plugins
from harness.environments import worker_python
from harness.gate.feed import examination
from harness.gate.jobs import Examiner
from harness.gate.result import GatePart
from harness.platform.platform import load_platform
from harness.worker.network.workload import Training
from tests.gate.conftest import Change, changed
from tests.gate.feed.conftest import cell_of
from tests.needs import framework

pytestmark = [pytest.mark.framework, pytest.mark.timeout(300)]

ORDER = "harness/worker/input/order.py"
SAME = {
    "global": ("return everything[rank::size]", "return everything[::size]"),
    "file": ("return files[rank::size]", "return files[::size]"),
    "none": ("range(rank, sum(held), size)", "range(0, sum(held), size)"),
}
STRATEGIES = [
    pytest.param("torch", "ddp", "dataloader", "npy"),
    pytest.param("jax", "data-parallel", "threads", "npy", marks=pytest.mark.long),
    pytest.param("tensorflow", "multiworker", "tf-data", "tfrecord", marks=pytest.mark.long),
]


def examined(
    place: Path, name: str, changes: Mapping[str, Change] | None = None, **factors: Any
) -> GatePart:
    """Examine ranks of one node."""
    framework(name)
    cell = cell_of(place, name, "tinycnn", **{"ranks_per_node": 2, **factors})
    changed(place / "payload", changes or {})
    platform = load_platform("local")
    interpreter = worker_python.resolve(cell.environment, platform)
    workload = plugins.workload(cell.workload)
    assert isinstance(workload, Training)
    (place / "feed").mkdir()
    with Examiner(platform, place) as examiner:
        return examination.examine(
            cell,
            workload,
            place / "feed",
            lambda job: examiner.go(job, interpreter, place / "payload", 280.0),
        )


@pytest.mark.parametrize(("name", "strategy", "reader", "form"), STRATEGIES)
def test_two_ranks_are_fed_shares_of_their_own(name, strategy, reader, form, tmp_path) -> None:
    how = {"strategy": strategy, "reader": reader, "format": form, "shuffle": "file"}
    part = examined(tmp_path, name, **how)
    assert part.finding is not None, part.why
    assert part.finding.differs is None
    assert part.finding.error < 1e-6


@pytest.mark.planted
@pytest.mark.long
@pytest.mark.parametrize("shuffle", SAME)
def test_ranks_with_the_same_share_are_caught(shuffle, tmp_path, planted) -> None:
    how = {"strategy": "ddp", "reader": "dataloader", "format": "npy", "shuffle": shuffle}
    part = examined(tmp_path, "torch", {ORDER: SAME[shuffle]}, **how)
    assert part.finding is not None, part.why
    planted("torch", f"one share for all ranks, {shuffle}", "what it is fed", part.finding.differs)
    assert str(part.finding.differs).startswith("ranks 0 and 1 are fed the same samples: ")


@pytest.mark.long
def test_two_devices_of_a_rank_are_fed_one_batch(tmp_path) -> None:
    how = {"strategy": "mirrored", "reader": "tf-data", "format": "raw", "shuffle": "global"}
    part = examined(tmp_path, "tensorflow", devices_per_rank=2, ranks_per_node=1, **how)
    assert part.finding is not None, part.why
    assert part.finding.differs is None
