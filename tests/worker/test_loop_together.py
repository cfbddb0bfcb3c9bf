"""Drive the timed loop over several ranks, and over what is read in epochs."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from harness.worker import loop
from harness.worker.job import Span
from tests.worker.paced import Log, Work


class Ranks:
    """A meeting point of several ranks, each in a thread with a clock of its own."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size, timeout=30)
        self.offers = [0.0] * size

    def agree(self, rank: int, value: float) -> float:
        self.offers[rank] = value
        self.barrier.wait()
        largest = max(self.offers)
        self.barrier.wait()
        return largest


class SharedWork(Work):
    def __init__(self, log: Log, step_s: float, rank: int, ranks: Ranks) -> None:
        super().__init__(log, step_s)
        self.rank = rank
        self.ranks = ranks

    def agree(self, value: float) -> float:
        self.log.happened.append("agree")
        return self.ranks.agree(self.rank, value)


@pytest.mark.parametrize(
    ("warmup", "until"),
    [
        (Span(steps=20), Span(seconds=2)),
        (Span(seconds=1), Span(seconds=2)),
        (Span(seconds=1), Span(steps=500)),
    ],
)
def test_ranks_of_unequal_speed_run_the_same_windows(warmup: Span, until: Span) -> None:
    ranks = Ranks(3)
    logs = [Log() for _ in range(3)]

    def rank(number: int) -> None:
        work = SharedWork(logs[number], 0.001 * (number + 1), number, ranks)
        loop.run(
            work,
            logs[number],  # type: ignore[arg-type]
            warmup=warmup,
            until=until,
            size=3,
            clock=logs[number].clock,
        )

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    shapes = [[(w["phase"], w["first"], w["steps"]) for w in log.events("window")] for log in logs]
    assert shapes[0] == shapes[1] == shapes[2]
    assert len(shapes[0]) > 10


def test_ranks_meet_after_all_housekeeping_of_a_window() -> None:
    log = Log()
    work = SharedWork(log, 0.01, 0, Ranks(1))
    loop.run(work, log, warmup=Span(steps=3), until=Span(seconds=2), size=2, clock=log.clock)  # type: ignore[arg-type]
    happened = log.happened
    starts = [at - 1 for at, what in enumerate(happened) if what == "step"]
    for start in starts[1:]:
        assert [what for what in happened[:start] if what != "clock"][-1] == "agree"


class Epochs:
    """Passes of so many steps, whose ends and beginnings take no time of the clock's."""

    def __init__(self, log: Log, steps: int, whole: bool) -> None:
        self.log = log
        self.steps = steps
        self.whole = whole
        self.number = -1
        self.rest = 0
        self.is_warm_up = True

    def left(self) -> int:
        return self.rest

    @property
    def is_looked_at(self) -> bool:
        return self.is_warm_up and self.number == 0

    def look(self) -> None:
        self.log.happened.append("look")

    def turn(self) -> dict[str, Any] | None:
        self.log.happened.append("turn")
        told = {"number": self.number} if self.number >= 0 else None
        self.number += 1
        self.rest = self.steps
        return told


class Reader(Work):
    """Work that waits for input before each step."""

    def __init__(self, log: Log, epochs: Epochs) -> None:
        super().__init__(log, 0.001)
        self.epochs = epochs

    def fetch(self) -> None:
        self.log.now += 2_000_000
        self.epochs.rest -= 1


@pytest.mark.parametrize("whole", [True, False])
def test_no_window_crosses_an_epoch_and_reading_is_measured_in_whole_ones(whole: bool) -> None:
    log = Log()
    work = Reader(log, Epochs(log, 25, whole))
    loop.run(work, log, warmup=Span(steps=5), until=Span(steps=30), clock=log.clock)  # type: ignore[arg-type]
    assert log.happened.count("look") == (25 if whole else 5)
    for window in log.events("window"):
        assert window["first"] >= 25 or window["steps"] == 1 or window["phase"] == "measure"
        assert window["first"] // 25 == (window["first"] + window["steps"] - 1) // 25
        assert window["waited"] == 2_000_000 * window["steps"]
    measured = sum(window["steps"] for window in log.windows("measure"))
    assert measured == (50 if whole else 30)
    epochs = log.events("epoch")
    assert [(one["number"], one["first"], one["steps"]) for one in epochs][:1] == [(0, 0, 25)]
    if whole:
        assert [one["phase"] for one in epochs] == ["warm-up", "measure", "measure"]
