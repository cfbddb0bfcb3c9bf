"""A start from which trials are examined hides no fault by what it happens to be."""

from __future__ import annotations

import numpy as np
import pytest

from harness.gate.proof import request
from harness.gate.proof.expected_updates import reference
from harness.gate.tensors import draws, folders
from harness.worker.network.workload import MASKED, clip
from tests.gate.proof.test_clean_networks import NETWORKS, TEXTS, TWINS

CLIPPED = {**TEXTS, **TWINS}


@pytest.mark.parametrize("name", CLIPPED)
def test_gradients_are_longer_than_what_they_are_clipped_to(name, given) -> None:
    workload = CLIPPED[name].WORKLOAD
    start = request.read_start(folders.open_folder(given(CLIPPED[name], 1)))
    most = clip(workload.optimiser)
    assert most is not None
    assert reference(workload, start, 1).norm > 1.2 * most


@pytest.mark.parametrize("name", [*NETWORKS, *TWINS])
def test_no_weight_is_what_training_begins_with(name, given) -> None:
    made = folders.open_folder(given({**NETWORKS, **TWINS}[name], 1))
    for parameter, began in made.under("initial/").items():
        assert not np.array_equal(
            folders.array(began), folders.array(made.tensors[f"start/{parameter}"])
        ), parameter


def test_each_position_of_a_text_is_asked_of_some(given) -> None:
    found = draws.targets("token-cross-entropy", "some", 16, (64, 512))
    assert (found != MASKED).any(axis=0).all()
    assert (found == MASKED).any(axis=1).all()
