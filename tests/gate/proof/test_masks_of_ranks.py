"""Dropouts of ranks that train together draw numbers of their own, in whole trials."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.gate.jobs import Examiner
from harness.store.events.rank_streams import read_streams
from harness.store.layout import TrialName, TrialPaths
from harness.store.outcome import RankEnd
from harness.store.records import TrialRecord
from harness.verdicts.credibility.learning import judge_masks
from harness.worker.scale import Scale
from tests.gate.conftest import Change
from tests.gate.proof import dropping
from tests.gate.proof.rank_trials import PLATFORM, RankTrials
from tests.outcomes import ended

pytestmark = [pytest.mark.framework, pytest.mark.timeout(300)]

TORCH = "harness/worker/adapters/torch/strategies/strategy.py"
TENSORFLOW = "harness/worker/adapters/tensorflow/adapter.py"
SEEDED = {
    "ddp": {TORCH: ("torch.manual_seed(job.seed + place.rank)", "torch.manual_seed(job.seed)")},
    "multiworker": {TENSORFLOW: ("job.seed + place.rank", "job.seed")},
}
SEEDED_BY = [("torch", "ddp"), ("tensorflow", "multiworker")]
STRATEGIES = [SEEDED_BY[0], pytest.param(*SEEDED_BY[1], marks=pytest.mark.long)]


def named(place: Path, name: str, strategy: str, changes: Mapping[str, Change]) -> list[str]:
    """Run a trial of two ranks; give what is said of their masks."""
    place.mkdir()
    count = iter(range(9))

    def fresh(what: str) -> Path:
        made = place / f"{what}-{next(count)}"
        made.mkdir()
        return made

    with Examiner(PLATFORM, place) as examiner:
        scale = Scale(ranks_per_node=2, batch_per_device=8)
        RankTrials(examiner, fresh).prove(name, strategy, dropping, changes, scale=scale)
    ranks = tuple(
        RankEnd(rank, "here", pid=1, exit_code=0, cpu_s=0.0, max_rss_bytes=0) for rank in (0, 1)
    )
    paths = TrialPaths(place / "job-1")
    record = TrialRecord("planted", TrialName(1), paths, ended(ranks=ranks))
    ((_, streams),) = read_streams([record])
    assert len(streams) == 2
    return [finding.evidence for finding in judge_masks(streams)]


@pytest.mark.planted
@pytest.mark.parametrize(("name", "strategy"), STRATEGIES)
def test_one_mask_for_all_ranks_is_caught_and_named(name, strategy, tmp_path, planted) -> None:
    (found,) = named(tmp_path / "planted", name, strategy, SEEDED[strategy])
    planted(name, "one mask for all ranks", "masks", found)
    assert found.endswith("in rank 0 and in rank 1: dropouts drop the same in both")


@pytest.mark.long
@pytest.mark.parametrize(("name", "strategy"), [*SEEDED_BY, ("jax", "data-parallel")])
def test_masks_of_their_own_are_believed(name, strategy, tmp_path) -> None:
    assert named(tmp_path / "clean", name, strategy, {}) == []
