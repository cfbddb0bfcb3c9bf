"""Examine the lowerings of Caffe and SINGA, computed by their stand-ins.

It holds what the adapters write and call to the vocabulary. That the frameworks compute what their
stand-ins do is for a real one to show.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.adapters.caffe.test_worker import program
from tests.adapters.singa import line
from tests.gate import network as gated
from tests.gate.conftest import Subject

pytestmark = pytest.mark.framework

ADAPTERS = Path(__file__).parents[1] / "adapters"
CAFFE = "harness/worker/adapters/caffe/"
SINGA = "harness/worker/adapters/singa/"


@pytest.fixture
def caffe(tmp_path: Path) -> Callable[..., Subject]:
    """Give a subject with the stand-ins of pycaffe and of the program beside it."""

    def subject(
        change: tuple[str, str] | None = None, file: str = "lowering.py", **env: str
    ) -> Subject:
        return Subject(
            "caffe",
            {CAFFE + file: change} if change else {},
            stands_in="torch",
            beside=ADAPTERS / "caffe" / "pycaffe",
            env={"CAFFE_BIN": str(program(tmp_path, "bvlc")), **env},
        )

    return subject


def singa(change: tuple[str, str] | None = None, file: str = "lowering.py") -> Subject:
    return Subject(
        "singa",
        {SINGA + file: change} if change else {},
        stands_in="torch",
        beside=ADAPTERS / "singa" / "stand_in",
    )


@pytest.mark.parametrize("network", [gated, line])
def test_caffe_s_net_computes_the_network(network, caffe, timed) -> None:
    finding = timed(caffe(), network=network)
    assert finding.differs is None
    assert finding.has_updates
    assert finding.error > 1e-9


def test_a_scale_that_an_engine_folds_into_the_norm_before_it_is_found_there(caffe, timed) -> None:
    finding = timed(caffe(PYCAFFE_FOLDS="1"))
    assert finding.differs is None
    assert finding.has_updates


def test_singa_s_model_computes_the_network(timed) -> None:
    finding = timed(singa(), network=line)
    assert finding.differs is None
    assert finding.has_updates
    assert finding.error > 1e-9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('PLAIN = [("lr_mult", 1)', 'PLAIN = [("lr_mult", 2)'), "'s bias after update 1 of its"),
        (('PLAIN = [("lr_mult", 1), ("decay_mult", 0)]', 'PLAIN = [("lr_mult", 1)]'), "'s bias"),
    ],
)
def test_rates_and_decays_of_caffe_s_parameters_are_held(change, words, caffe, timed) -> None:
    finding = timed(caffe(change))
    assert "the optimiser: " in finding.differs
    assert words in finding.differs


def test_a_momentum_that_caffe_lacks_shows_in_the_second_update(caffe, timed) -> None:
    wrong = caffe(('("momentum", rule.momentum)', '("momentum", 0.0)'), "solver.py")
    assert "after update 2 of its own gradients" in timed(wrong).differs


def test_a_rate_of_its_own_that_singa_gives_to_biases_is_caught(timed) -> None:
    wrong = singa(("lr=rate, beta_1=rule.beta1", "lr=2 * rate, beta_1=rule.beta1"), "training.py")
    assert " after update 1 of its own gradients" in timed(wrong, network=line).differs


def test_an_alpha_that_caffe_divides_by_the_size_is_caught(caffe, timed) -> None:
    finding = timed(caffe(("layer.alpha * layer.size", "layer.alpha")))
    assert "norm1: output" in finding.differs


def test_windows_that_caffe_s_pool_has_too_many_are_caught(caffe, timed) -> None:
    change = (
        "is_exact = tuple(made) == tuple(site.output[1:])\n        top",
        "is_exact = True\n        top",
    )
    assert "pool1: output" in timed(caffe(change)).differs


def test_singa_s_own_dropout_is_caught(timed) -> None:
    finding = timed(singa(("1 / (1 - self.ratio)", "1 / 1 - self.ratio")), network=line)
    assert "drop: output: what stays" in finding.differs
