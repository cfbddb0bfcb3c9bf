from __future__ import annotations

import pytest

from harness.plan.rules import message_rules
from harness.worker.network.workload import Collective, Nothing
from harness.worker.scale import Scale


@pytest.mark.parametrize(
    ("operation", "ranks", "size", "why"),
    [
        ("all-reduce", 1, 4, "needs two ranks or more"),
        ("all-reduce", 2, 6, "no whole number of float32"),
        ("all-gather", 3, 4, "do not divide among 3 ranks"),
        ("all-gather", 2, 4, None),
        ("broadcast", 3, 5, None),
    ],
)
def test_a_message_that_cannot_be_exchanged_is_a_hole_with_its_reason(
    operation: str, ranks: int, size: int, why: str | None
) -> None:
    workload = Collective(operation, "a title", operation)
    told = message_rules.why_not(workload, {"message_bytes": size}, Scale(nodes=ranks))
    assert told is None if why is None else told and why in told


def test_messages_are_about_collectives_only() -> None:
    told = message_rules.why_not(Nothing("nothing", "a title"), {"message_bytes": 4}, Scale())
    assert told == "message_bytes is about collectives, and nothing is none"


def test_a_message_nobody_sized_has_the_workloads_own_size() -> None:
    factors = {"message_bytes": None}
    message_rules.complete(Collective("broadcast", "a title", "broadcast"), factors)
    assert factors["message_bytes"] == 2**22
