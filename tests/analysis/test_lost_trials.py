"""These tests hold what a comparison says where one of its cells lost trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from harness.analysis.analyse import analyse
from harness.store.dataset import Dataset
from harness.verdicts.results import Comparison
from tests.runs import Behaviour, RecordedCell, Recording, write_run

QUIET = Behaviour(trial_noise=0.005, window_noise=0.004)
STEP_S = {"same": 0.02, "faster": 0.018, "slower": 0.022}


def told(
    folder: Path,
    *,
    is_really: str,
    cell: Mapping[int, str] | None = None,
    reference: Mapping[int, str] | None = None,
) -> Comparison:
    base = RecordedCell(framework="torch", behaviour=QUIET, outcomes=reference or {})
    behaviour = replace(QUIET, step_s=STEP_S[is_really])
    other = RecordedCell(framework="jax", behaviour=behaviour, outcomes=cell or {})
    results = analyse(Dataset([write_run(folder, [base, other], Recording(trials=10))]))
    comparison = next(one for one in results.cells if one.framework == "jax").comparison
    assert comparison is not None
    return comparison


def lost(*blocks: int, ended: str = "timed-out") -> dict[int, str]:
    return dict.fromkeys(blocks, ended)


def test_a_slower_cell_that_lost_trials_is_slower_by_at_least_so_much(tmp_path: Path) -> None:
    comparison = told(tmp_path, is_really="slower", cell=lost(2, 5, 7))
    assert comparison.answer == "slower"
    assert comparison.interval is not None
    least = (1 - comparison.interval.high) * 100
    assert comparison.why == (
        f"at least {least:.2g} % slower, since it lost trials in 3 of 10 blocks (3 timed-out), "
        "the reference in 0"
    )


def test_nothing_good_is_said_of_a_cell_that_lost_more_than_chance_explains(tmp_path: Path) -> None:
    for truth in ("faster", "same"):
        comparison = told(tmp_path / truth, is_really=truth, cell=lost(2, 5, 7))
        assert comparison.answer == "cannot tell"
        assert comparison.more_blocks is None
        assert comparison.why == (
            "blocks were lost for a reason of a cell's own: it lost trials in 3 of 10 blocks "
            "(3 timed-out), the reference in 0"
        )


def test_what_the_reference_lost_speaks_for_the_others(tmp_path: Path) -> None:
    missing = {**lost(2, 5), **lost(7, ended="out-of-memory")}
    faster = told(tmp_path / "faster", is_really="faster", reference=missing)
    assert faster.answer == "faster"
    assert faster.why.startswith("at least ")
    assert faster.why.endswith(
        "% faster, since the reference lost trials in 3 of 10 blocks (2 timed-out, "
        "1 out-of-memory), this cell in 0"
    )
    assert told(tmp_path / "slower", is_really="slower", reference=missing).answer == "cannot tell"


def test_as_many_lost_by_both_leave_the_answer_as_it_is(tmp_path: Path) -> None:
    even = told(tmp_path / "even", is_really="faster", cell=lost(1, 2), reference=lost(3, 4))
    assert (even.answer, even.why) == ("faster", "the interval is above 1")
    both = told(tmp_path / "both", is_really="faster", cell=lost(1, 2), reference=lost(1, 2))
    assert (both.answer, both.why) == ("faster", "the interval is above 1")


def test_one_lost_trial_leaves_a_clear_difference_told(tmp_path: Path) -> None:
    comparison = told(tmp_path, is_really="faster", cell=lost(4, ended="failed"))
    assert comparison.answer == "faster"
    assert comparison.why == (
        "the interval is above 1, and it lost trials in 1 of 10 blocks (1 failed), "
        "the reference in 0"
    )


def test_a_trial_lost_with_its_node_says_nothing_of_its_cell(tmp_path: Path) -> None:
    comparison = told(tmp_path, is_really="faster", cell=lost(2, 5, 7, ended="node-lost"))
    assert (comparison.answer, comparison.why) == ("faster", "the interval is above 1")
