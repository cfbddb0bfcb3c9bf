"""Refuse claims and findings that say nothing, in one sentence each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

STUDY = """
title = "One"
claim = [{0}]
[matrix]
workload = "tinycnn"
framework = "torch"
[[finding]]
question = "?"
paper = "!"
{1}
of = {{ framework = "torch" }}
"""


@pytest.mark.parametrize(
    ("claims", "said", "problem"),
    [
        ('"lee2021/scalling"', "", "no paper claims 'lee2021/scalling'. Did you mean"),
        ('"lee2021/scaling"', "", "no finding answers 'lee2021/scaling'"),
        ("", 'claim = "lee2021/scaling"', "is not among the study's claim"),
        ("", 'measure = "efficiency"', "'efficiency' is of two cells: say over"),
        ("", 'measure = "speed"', "measure"),
    ],
)
def test_a_claim_or_measure_that_says_nothing_is_refused(
    claims: str, said: str, problem: str, refusal: Callable[..., str]
) -> None:
    assert problem in refusal(STUDY.format(claims, said))
