"""Step an exchange of messages, the same for every framework, and prove it first.

An adapter's ``exchange(operation, message)`` gives:

    fill(value)       let this rank's message hold that value throughout
    step()            exchange once; may return before it is done
    sync()            return when it is done
    received()        the smallest and largest value that arrived, for each part of the message
    agree(value)      the largest value any rank offers, as an Activity's

Before anything is timed each rank sends its own number, and what arrives must be what the operation
says. A rank whose part is over early (who broadcasts has only to send) waits at the end of a window
for the others, or it would time a buffer.
"""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Tuple

from harness.worker.network.workload import Collective
from harness.worker.place import Place

FLOAT_BYTES = 4
"""What is added up is float32."""


class WrongMessage(Exception):
    """Say that what arrived is not what was sent."""


class CollectiveActivity:
    """One exchange again and again."""

    def __init__(self, exchange: Any, workload: Collective, share: float) -> None:
        self.units: Mapping[str, float] = {workload.unit: share}
        self.step = exchange.step
        self.agree: Callable[[float], float] = exchange.agree
        self._exchange = exchange
        self._is_one_way = workload.operation == "broadcast"

    def sync(self) -> None:
        """Wait until it is done, where one rank could be early: by all."""
        self._exchange.sync()
        if self._is_one_way:
            self.agree(0.0)

    def values(self) -> Mapping[str, float]:
        """Give no values: an exchange has only its time."""
        return {}


def message(workload: Collective, factors: Mapping[str, Any]) -> int:
    """Give the size of the message in bytes."""
    size: int = factors.get("message_bytes") or workload.message_bytes
    return size


def activity(exchange: Any, workload: Collective, size: int, place: Place) -> CollectiveActivity:
    """Prove an exchange right, and give what steps it.

    The ranks' shares of the work add up to the size of the message, so that the rate of a cell is
    what the field calls algorithm bandwidth.
    """
    exchange.fill(_own(place.rank))
    exchange.step()
    exchange.sync()
    found, wanted = exchange.received(), _expected(workload.operation, place)
    if found != wanted:
        raise WrongMessage(
            "{} of {} bytes brought rank {} {}, not {}".format(
                workload.operation, size, place.rank, found, wanted
            )
        )
    exchange.fill(0.0)  # sums of anything else would grow without end
    return CollectiveActivity(exchange, workload, size / place.size)


def _own(rank: int) -> float:
    """Give the number that a rank sends, which fits in a byte."""
    return rank % 100 + 1.0


def _expected(operation: str, place: Place) -> List[Tuple[float, float]]:
    all_of_them = [_own(rank) for rank in range(place.size)]
    if operation == "all-reduce":
        all_of_them = [sum(all_of_them)]
    elif operation == "broadcast":
        all_of_them = [_own(0)]
    elif operation == "point-to-point":
        all_of_them = [_own((place.rank - 1) % place.size)]
    return [(value, value) for value in all_of_them]
