"""Ranks whose dropouts drop the same are found by their losses on the same samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from harness.store.events.rank_streams import Stream
from harness.verdicts.credibility.learning import judge_masks

NONE = np.zeros(0, np.int64)
OWN = ([2.30, 2.29, 2.27], [2.31, 2.28, 2.26])
"""Of each rank's own samples."""
OF_ALL = ([2.30, 2.29, 2.27], [2.30, 2.29, 2.27])


def said(trained: Sequence[Sequence[float]], *restarts: Sequence[float]) -> list[str]:
    """Judge ranks by their losses in training, and by those on the same samples."""
    streams = [
        Stream(
            rank,
            *(NONE, NONE, NONE, NONE),
            units={},
            versions={},
            facts={"restarts": list(own)},
            losses=list(enumerate(trained[rank])),
        )
        for rank, own in enumerate(restarts)
    ]
    return [finding.evidence for finding in judge_masks(streams)]


def test_ranks_that_drop_the_same_are_named() -> None:
    (text,) = said(OWN, [2.3025851, 2.31], [2.3025852, 2.31])
    assert text == (
        "a step from the same weights and samples has the loss 2.302585 in rank 0 and in rank 1: "
        "dropouts drop the same in both"
    )


@pytest.mark.parametrize(
    ("trained", "restarts"),
    [
        (OWN, ([2.3025851, 2.31], [2.3031, 2.309])),
        (OWN, ([2.3025851, 2.31], [2.3025851, 2.309])),
        (OF_ALL, ([2.3025851, 2.31], [2.3025851, 2.31])),
        (OWN, ([2.5, 2.25], [2.5, 2.25])),
        (OWN, ([], [])),
    ],
    ids=["others", "one alike", "the mean of all ranks", "no more digits than bf16", "none"],
)
def test_ranks_that_may_differ_are_believed(trained, restarts) -> None:
    assert said(trained, *restarts) == []


def test_a_rank_that_drops_nothing_is_named_as_that() -> None:
    assert "dropout is off" in said(OWN, [2.3025851] * 2, [2.3025851] * 2)[0]
