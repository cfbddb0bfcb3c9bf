"""The audit: a loader that drops, doubles or reorders samples is refused."""

from __future__ import annotations

import pytest

from harness.worker.input.evidence.audit import WrongDelivery, audited, digest

ASKED = [3, 1, 2, 0]


@pytest.mark.parametrize(
    ("delivered", "words"),
    [
        ([3, 1, 2], "1 missing"),
        ([3, 1, 2, 2], "1 too many"),
        ([1, 3, 2, 0], "changed the order: sample 1 came where 3 was asked for"),
        ([], "delivered nothing"),
    ],
)
def test_a_wrong_delivery_is_no_result(delivered: list[int], words: str) -> None:
    with pytest.raises(WrongDelivery, match=words):
        audited(ASKED, delivered)


def test_a_loader_that_promises_no_order_may_change_it_and_the_order_s_digest_tells() -> None:
    asked = audited(ASKED, ASKED)
    other = audited(ASKED, ASKED[::-1], keeps_order=False)
    assert asked["digest"] == other["digest"]
    assert asked["order"] != other["order"]


def test_the_digests_of_ranks_add_up_to_that_of_the_whole_set() -> None:
    whole = digest(range(1000))
    assert (digest(range(0, 1000, 2)) + digest(range(1, 1000, 2))) % 2**64 == whole
    assert digest([0, 0]) != digest([1, 1]) != digest([0, 2])
