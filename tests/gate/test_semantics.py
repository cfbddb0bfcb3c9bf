"""Hold comparisons in float64 to leaving slack where rounding may be all there is."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from harness.gate import reference, semantics
from harness.gate.reference import GateReference
from harness.gate.tensors import folders
from harness.worker.network.layers import BatchNorm, Conv, Dense, Flatten, Network, ReLU
from harness.worker.network.workload import Adam
from tests.gate.network import WORKLOAD

RATE = 1e-3
LAYERS = (
    Conv("biased", 4, 3),
    BatchNorm("behind"),
    ReLU("relu"),
    BatchNorm("elsewhere"),
    Flatten("flat"),
    Dense("fc", 5),
)
SMALL = dataclasses.replace(WORKLOAD, network=Network((2, 5, 5), LAYERS), optimiser=Adam(rate=RATE))


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> GateReference:
    return reference.make_semantics(SMALL, tmp_path_factory.mktemp("reference"))


def compared(right: GateReference, place: Path, name: str, change) -> semantics.TensorComparison:
    """Compare the reference with itself, but for one tensor that is changed or taken away."""
    made = {key: folders.array(one) for key, one in right.made.tensors.items()}
    whole = made.pop(name)
    if change is not None:
        made[name] = change(whole)
    folders.write(place / "made", made, {"request": {"thin": 0}})
    again = folders.open_folder(place / "made")
    return semantics.semantics(SMALL, right.given, right.made, again, ())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("after/2/biased/bias", None),
        ("after/2/behind/mean", None),
        ("after/1/behind/mean", "behind: running mean after update 1"),
        ("after/3/behind/mean", "behind: running mean after update 3 from"),
        ("after/2/elsewhere/mean", "elsewhere: running mean after update 2"),
        ("after/2/fc/bias", "the optimiser: fc's bias after update 2"),
        ("after/5/fc/bias", "the optimiser: fc's bias after update 5 from"),
    ],
)
def test_adam_s_steps_of_rounding_are_allowed_where_they_reach(
    right, tmp_path, name, words
) -> None:
    finding = compared(right, tmp_path, name, lambda whole: whole + RATE)
    assert (finding.differs or "").startswith(words or "")
    assert (finding.differs is None) == (words is None)


def test_every_layer_s_output_must_be_given(right, tmp_path) -> None:
    finding = compared(right, tmp_path, "activation/relu", None)
    assert finding.differs == "relu: output: nothing was given"


def test_what_should_be_zero_is_not_called_no_number() -> None:
    zero, made = np.zeros(2), np.array([1.0, 3.0])
    words = semantics.off_by("it", made, zero, np.inf, 1e-8)
    assert words == "it is up to 3.0e+00, and should be zero"
    words = semantics.off_by("it", made * np.inf, zero, np.inf, 1e-8)
    assert words == "it is not a number everywhere"
