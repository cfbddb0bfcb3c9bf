"""Let ranks that only read meet: they end epochs, drop pages and begin together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.study import measure
from harness.worker import loop
from harness.worker.input.evidence import page_cache
from harness.worker.input.open import reading
from harness.worker.input.rank_barrier import TIMEOUT_S, Absent, RankBarrier
from harness.worker.job import Span
from harness.worker.network.workload import Reading
from harness.worker.place import Place
from tests.scales import fed

WORKLOAD = Reading("read-tiny", "Tiny pictures", "tiny-pictures", 25)


class Said:
    """The events of one rank."""

    def __init__(self) -> None:
        self.epochs: list[tuple[str, int, int]] = []

    def say(self, event: str, **told: Any) -> None:
        if event == "epoch":
            self.epochs.append((told["phase"], told["number"], told["samples"]))

    def flush(self) -> None:
        """Write nothing."""


def together(*ranks: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=rank, daemon=True) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_everybody_hears_the_largest_number_of_each_meeting(tmp_path: Path) -> None:
    heard: dict[int, list[float]] = {}

    def rank(number: int) -> None:
        barrier = RankBarrier(str(tmp_path), number, 3)
        heard[number] = [barrier.agree(turn + 0.1 * number) for turn in range(20)]

    together(*(lambda number=number: rank(number) for number in range(3)))  # type: ignore[misc]
    assert heard[0] == heard[1] == heard[2] == [turn + 0.1 * 2 for turn in range(20)]


def test_a_rank_that_does_not_come_is_named(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="rank 1 did not come to meeting 0"):
        RankBarrier(str(tmp_path), 0, 2, timeout_s=0.05).agree()


def test_ranks_wait_longer_than_any_trial_may_take() -> None:
    assert TIMEOUT_S > measure._LONGEST_S


@pytest.mark.parametrize("until", [Span(steps=30), Span(seconds=0.2)])
def test_ranks_read_the_same_epochs_and_no_pages_are_dropped_amid_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: Span
) -> None:
    """Rank 0 has 13 of 25 samples and is quick; rank 1 has 12 and computes beside."""
    spec = DataSetSpec("tiny-pictures", "npy", 25)
    create(spec, tmp_path / "set", doing=lambda _: None)
    factors = {"format": "npy", "reader": "pread", "batch": 1, "cache": "cold"}
    works = [
        reading(WORKLOAD, fed(WORKLOAD, factors, place, tmp_path / "set", meeting=str(tmp_path)))
        for place in (Place(rank, 2, rank, 2, "", "") for rank in range(2))
    ]
    monkeypatch.setattr(works[1], "_compute", lambda: time.sleep(0.002))
    left: list[int] = []
    dropped = page_cache.evict

    def watched(files: Any) -> None:
        left.extend(work.epochs.left() for work in works)
        dropped(files)

    monkeypatch.setattr(page_cache, "evict", watched)
    said = [Said(), Said()]

    def rank(number: int) -> None:
        work, events = works[number], said[number]
        loop.run(work, events, warmup=Span(steps=2), until=until, size=2)  # type: ignore[arg-type]

    together(lambda: rank(0), lambda: rank(1))
    assert set(left) <= {0, 12, 13}  # an epoch is over, or not begun
    numbers = [[(phase, number) for phase, number, _ in one.epochs] for one in said]
    assert numbers[0] == numbers[1]
    if until.steps is not None:  # 24 of the 30 are too few for the shorter share
        assert [phase for phase, _ in numbers[0]] == ["warm-up", "measure", "measure", "measure"]


def test_only_one_rank_of_a_node_prepares_what_they_share(tmp_path: Path) -> None:
    spec = DataSetSpec("tiny-pictures", "npy", 25)
    create(spec, tmp_path / "set", doing=lambda _: None)
    factors = {"format": "npy", "reader": "pread", "batch": 1}
    places = [Place(rank, 4, rank % 2, 2, "", "") for rank in range(4)]
    there = tmp_path / "set"
    files = [fed(WORKLOAD, factors, place, there).files for place in places]
    assert [one is not None and one.is_first_here for one in files] == [True, False, True, False]
