from __future__ import annotations

from harness.verdicts.thresholds import judge_ranks


def test_the_rank_that_is_behind_is_named_with_its_host() -> None:
    step_s = {"rank 0 on a": 0.100, "rank 1 on b": 0.101, "rank 2 on c": 0.125}
    (found,) = judge_ranks(step_s)
    assert found.verdict == "straggler"
    assert found.evidence.startswith("rank 2 on c took 24 % longer for a step")


def test_ranks_within_a_tenth_and_lone_ranks_do_not_straggle() -> None:
    assert judge_ranks({"rank 0 on a": 0.100, "rank 1 on b": 0.109}) == ()
    assert judge_ranks({"rank 0 on a": 0.100}) == ()
