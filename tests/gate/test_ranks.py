"""Ranks that train together equal one rank with the batch of all, in each framework's own way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from harness import plugins
from harness.environments import worker_python
from harness.gate import gate, ranks
from harness.gate.jobs import Examiner
from harness.gate.result import GatePart, Result
from harness.gate.semantics import TensorComparison
from harness.gate.tensors import folders, requests
from harness.plan.cell import Cell
from harness.plan.gate_duration import trains_together
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.store.records import DIFFERS, EQUIVALENT, EXAMINATION_FAILED, NOT_CHECKED
from harness.study.study import load_study
from harness.worker.gate.rank_equality import share, without_norms
from harness.worker.network.layers import BatchNorm
from harness.worker.network.shapes import sites
from tests.gate.conftest import Change, changed
from tests.needs import compiled, framework

STUDY = """
title = "Ranks"
[matrix]
workload = "tinycnn"
framework = "{}"
strategy = "{}"
ranks_per_node = 2
batch = 4
[measure]
trials = 1
warmup = "3 steps"
until = "5 steps"
"""
STRATEGIES = (
    ("tensorflow", "mirrored", False),
    ("tensorflow", "parameter-server", False),
    ("torch", "ddp", False),
    ("torch", "horovod", False),
    ("tensorflow", "multiworker", False),
    ("tensorflow", "horovod", False),
    ("jax", "data-parallel", True),
)
MISTAKES = {
    "gradients that are not exchanged": (
        *("torch", "ddp"),
        "harness/worker/adapters/torch/strategies/ddp.py",
        ("if not self._communicates:", "if True:"),
    ),
    "gradients that are added up, not averaged": (
        *("tensorflow", "multiworker"),
        "harness/worker/adapters/tensorflow/strategies/strategies.py",
        ("mean = self._tf.distribute.ReduceOp.MEAN", "mean = self._tf.distribute.ReduceOp.SUM"),
    ),
}


def cell_of(place: Path, name: str, strategy: str, accumulate: int = 1) -> Cell:
    path = place / "study.toml"
    text = STUDY.format(name, strategy)
    if accumulate > 1:
        more = f'workload = "tinygpt"\naccumulate = {accumulate}'
        text = text.replace('workload = "tinycnn"', more)
    if strategy == "mirrored":
        text = text.replace("ranks_per_node", "devices_per_rank")
    path.write_text(text)
    platform = load_platform("local")
    binding = platform.binding.model_copy(update={"oversubscribe": True})
    (cell,) = make_plan(
        load_study(str(path)), platform.model_copy(update={"binding": binding})
    ).cells
    return cell


def examined(place: Path, cell: Cell, changes: Mapping[str, Change] | None = None) -> GatePart:
    framework("torch" if cell.adapter == "torch" else cell.adapter)
    if cell.strategy == "horovod":
        compiled(cell.environment)
    source = place / "payload"
    changed(source, changes or {})
    platform = load_platform("local")
    interpreter = worker_python.resolve(cell.environment, platform)
    small = requests.examined(plugins.workload(cell.workload))
    (place / "folders").mkdir()
    with Examiner(platform, place) as examiner:
        return ranks.examine(
            cell,
            small,
            {"threads": 1},
            place / "folders",
            lambda job: examiner.go(job, interpreter, source, 280.0),
        )


@pytest.mark.framework
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "strategy", "norms"), STRATEGIES)
def test_two_ranks_equal_one_with_the_batch_of_both(tmp_path, name, strategy, norms):
    part = examined(tmp_path, cell_of(tmp_path, name, strategy))
    assert part.finding is not None, part.why
    assert part.finding.differs is None
    assert part.finding.error < 1e-10
    assert part.facts == {"norms": norms}


@pytest.mark.framework
@pytest.mark.timeout(300)
def test_two_ranks_that_accumulate_equal_one_batch(tmp_path):
    part = examined(tmp_path, cell_of(tmp_path, "torch", "ddp", accumulate=2))
    assert part.finding is not None, part.why
    assert part.finding.differs is None
    assert part.finding.error < 1e-10


@pytest.mark.framework
@pytest.mark.timeout(300)
@pytest.mark.planted
@pytest.mark.parametrize("mistake", MISTAKES)
def test_ranks_that_do_not_average_are_caught(tmp_path, mistake, planted):
    name, strategy, file, change = MISTAKES[mistake]
    part = examined(tmp_path, cell_of(tmp_path, name, strategy), {file: change})
    assert part.finding is not None, part.why
    planted(name, mistake, "two ranks against one", part.finding.differs)
    assert "after update 1: what rank 0 of 2 changed is" in str(part.finding.differs)


def test_the_result_says_what_ranks_do_and_whether_norms_are_synchronised():
    good = Result(EQUIVALENT, "float64, 3e-11")
    apart = ranks.joined(good, GatePart(TensorComparison(4e-14), facts={"norms": False}), "")
    assert str(apart) == (
        "equivalent (float64, 3e-11; 2 ranks equal one, 4e-14, batch norms left out (sync-BN off))"
    )
    together = ranks.joined(good, GatePart(TensorComparison(4e-14), facts={"norms": True}), "")
    assert together.detail.endswith("2 ranks equal one, 4e-14, sync-BN on")
    wrong = ranks.joined(good, GatePart(TensorComparison(0.0, "fc/bias is off")), " at 3×64×64")
    assert (wrong.state, wrong.detail) == (DIFFERS, "fc/bias is off; in float64 at 3×64×64")
    unknown = ranks.joined(good, GatePart(None, "no Horovod here", is_unsupported=True), "")
    assert (unknown.state, unknown.detail) == (NOT_CHECKED, "2 ranks: no Horovod here")
    crashed = ranks.joined(good, GatePart(None, "it fell over"), "")
    assert (crashed.state, crashed.detail) == (EXAMINATION_FAILED, "2 ranks: it fell over")


def test_what_exchanges_messages_proves_them_in_every_trial(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format("torch", "ddp").replace("tinycnn", "all-reduce"))
    (result,) = gate.ensure(make_plan(load_study(str(path)), load_platform("local"))).values()
    assert str(result) == "equivalent (each trial proves its message before it is timed)"


def test_one_rank_is_enough_where_nothing_is_exchanged(tmp_path):
    cell = cell_of(tmp_path, "torch", "ddp")
    assert trains_together(cell)
    quiet = {**cell.factors, "communicate": False}
    assert not trains_together(Cell(**{**vars(cell), "factors": quiet}))


def test_ranks_that_drift_apart_are_told_by_number(tmp_path):
    start, end = np.zeros(3), np.ones(3)
    folders.write(tmp_path / "given", {"initial/fc/bias": start}, {"thin": 0})
    folders.write(tmp_path / "one", {"after/1/fc/bias": end}, {})
    folders.write(tmp_path / "drifted", {"after/1/fc/bias": end * 1.01}, {})
    given, one, drifted = (folders.open_folder(tmp_path / n) for n in ("given", "one", "drifted"))
    assert ranks.compared(given, one, [one, one]) == TensorComparison(0.0)
    differs = ranks.compared(given, one, [one, drifted]).differs
    assert differs is not None
    assert differs.startswith("fc/bias after update 1: what rank 1 of 2 changed is 1.0e-02 off")


def test_a_batch_is_shared_out_whole():
    assert [share(4, rank, 2) for rank in (0, 1)] == [slice(0, 2), slice(2, 4)]
    with pytest.raises(ValueError, match="a batch of 5 does not divide over 2 ranks"):
        share(5, 0, 2)


def test_norms_are_left_out_of_residuals_too():
    network = plugins.workload("resnet50").network
    assert any(isinstance(site.layer, BatchNorm) for site in sites(network))
    plain = type(network)(input=network.input, layers=without_norms(network.layers))
    assert not any(isinstance(site.layer, BatchNorm) for site in sites(plain))
