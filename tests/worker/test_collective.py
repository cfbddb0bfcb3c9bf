from __future__ import annotations

import pytest

from harness.worker import collective
from harness.worker.network.workload import Collective
from harness.worker.place import Place

LAST = Place(rank=2, size=3, local_rank=2, local_size=3, host="h", launcher="bakeoff")


class Recorded:
    """An exchange in which each rank received what it is told."""

    def __init__(self, arrives: list[float], met: list[float]) -> None:
        self._met = met
        self.filled: list[float] = []
        self.steps = 0
        self._arrives = arrives

    def fill(self, value: float) -> None:
        self.filled.append(value)

    def step(self) -> None:
        self.steps += 1

    def sync(self) -> None:
        pass

    def agree(self, value: float) -> float:
        self._met.append(value)
        return value

    def received(self) -> list[tuple[float, float]]:
        return [(value, value) for value in self._arrives]


def opened(operation: str, arrives: list[float], met: list[float]) -> collective.CollectiveActivity:
    workload = Collective(operation, "a title", operation)
    return collective.activity(Recorded(arrives, met), workload, 12, LAST)


@pytest.mark.parametrize(
    ("operation", "arrives"),
    [
        ("all-reduce", [6.0]),
        ("all-gather", [1.0, 2.0, 3.0]),
        ("broadcast", [1.0]),
        ("point-to-point", [2.0]),
    ],
)
def test_an_exchange_is_proved_before_it_is_timed(operation: str, arrives: list[float]) -> None:
    activity = opened(operation, arrives, [])
    assert activity.units == {"bytes": 4.0}, "the ranks' shares make up one message"
    with pytest.raises(collective.WrongMessage, match="brought rank 2"):
        opened(operation, [9.0], [])


def test_only_a_broadcast_waits_for_the_ranks_that_are_behind() -> None:
    met: list[float] = []
    opened("all-reduce", [6.0], met).sync()
    assert not met
    opened("broadcast", [1.0], met).sync()
    assert met
