"""Hold an optimiser's updates to gradients that the framework says it took."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from harness.gate.own_updates import EPSILON, judge
from harness.gate.semantics import TensorComparison
from harness.gate.tensors import folders
from harness.worker.network.workload import Adam
from tests.adapters.singa import line

Array = npt.NDArray[np.float64]
RULE = Adam(rate=1e-3)
WORKLOAD = replace(line.WORKLOAD, optimiser=RULE)
SMALL = 1e-9
"""A gradient below epsilon, whose change an epsilon elsewhere makes another one."""


def trained(folder: Path, *, early: bool, bias_rate: float = 1.0, size: float = SMALL) -> object:
    """Train a bias and a weight by Adam, with epsilon before or after the correction."""
    draw = np.random.default_rng(3)
    state = {name: draw.normal(size=6).astype(np.float32) for name in ("fc/weight", "fc/bias")}
    moments = {name: (np.zeros(6), np.zeros(6)) for name in state}
    tensors: dict[str, Array] = {f"own/0/after/{k}": v.astype(float) for k, v in state.items()}
    for step in (1, 2, 3):
        for name, value in state.items():
            gradient = draw.normal(size=6) * size
            first, second = moments[name]
            first += (1 - RULE.beta1) * (gradient - first)
            second += (1 - RULE.beta2) * (gradient**2 - second)
            late = RULE.epsilon / (np.sqrt(1 - RULE.beta2**step) if early else 1.0)
            root = np.sqrt(second / (1 - RULE.beta2**step)) + late
            rate = RULE.rate * (bias_rate if name == "fc/bias" else 1.0)
            value -= (rate * first / (1 - RULE.beta1**step) / root).astype(np.float32)
            tensors[f"own/{step}/gradient/{name}"] = gradient
            tensors[f"own/{step}/after/{name}"] = value.astype(float)
    folders.write(folder / "made", tensors, {})
    return folders.open_folder(folder / "made")


def judged(made: object, *declared: str) -> TensorComparison:
    finding = judge(WORKLOAD, 8, made, declared)  # type: ignore[arg-type]
    assert finding is not None
    return finding


def test_updates_by_the_rule_agree(tmp_path: Path) -> None:
    finding = judged(trained(tmp_path, early=False))
    assert (finding.differs, finding.named, finding.has_updates) == (None, False, True)


def test_an_epsilon_before_the_correction_is_named_where_it_is_declared(tmp_path: Path) -> None:
    made = trained(tmp_path, early=True)
    assert "the optimiser: fc's weight after update 1" in (judged(made).differs or "")
    finding = judged(made, EPSILON)
    assert (finding.differs, finding.named) == (None, True)


@pytest.mark.parametrize("size", [SMALL, 1.0])
def test_a_rate_of_its_own_is_found_whatever_epsilon_does(tmp_path: Path, size: float) -> None:
    made = trained(tmp_path, early=True, bias_rate=2.0, size=size)
    assert "the optimiser: fc's bias after update 1" in (judged(made, EPSILON).differs or "")


def test_who_gives_no_updates_is_not_judged_by_any(tmp_path: Path) -> None:
    folders.write(tmp_path / "made", {"output": np.zeros(1)}, {})
    assert judge(WORKLOAD, 8, folders.open_folder(tmp_path / "made"), ()) is None
