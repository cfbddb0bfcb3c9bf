"""Messages that did not go where the platform claims make a trial misrouted, rank by rank."""

from __future__ import annotations

import pytest

from harness.verdicts.route_claims import Claim, Route, judge_routes
from harness.verdicts.thresholds import REJECTING, rejecting

FAST = Claim("InfiniBand HDR")


def evidence(claim: Claim, sent: dict[str, int], **transports: int) -> list[str]:
    told = {name.replace("_", "/"): count for name, count in transports.items()}
    found = judge_routes(claim, [Route("rank 3 on cn7", sent, told)])
    assert {one.verdict for one in found} <= {"misrouted"}
    return [one.evidence for one in found]


def test_a_fast_fabric_leaves_no_bytes_in_sockets():
    assert evidence(FAST, {"eth0": 40_000, "lo": 10**9}) == []
    assert evidence(FAST, {"ib0": 2 * 10**9}) == [
        f"rank 3 on cn7 sent 2,000.0 MB through sockets of ib0, not the claimed {FAST.fabric}"
    ]


def test_a_library_that_says_it_took_sockets_is_believed_before_bytes_are_counted():
    assert evidence(FAST, {"eth0": 10**9}, NET_Socket=4, SHM=2) == [
        "rank 3 on cn7 talked through NET/Socket (4), not the claimed InfiniBand HDR"
    ]
    assert evidence(FAST, {}, NET_IB_GDRDMA=4, P2P=2) == []


def test_a_claimed_interface_must_be_the_one_that_carried():
    claim = Claim("Ethernet 100G", "hsn0")
    assert evidence(claim, {"hsn0": 10**9, "eth0": 10**4}) == []
    assert evidence(claim, {"hsn0.12": 10**9}) == []
    assert evidence(claim, {"eth0": 10**9}) == [
        "rank 3 on cn7 sent 1,000.0 MB through eth0, not the claimed hsn0"
    ]


def test_who_claims_nothing_is_never_wrong():
    assert evidence(Claim("Ethernet"), {"eth0": 10**9}, NET_Socket=4) == []


@pytest.mark.parametrize("tolerated", [(), ("contended", "throttled", "stalled")])
def test_it_rejects_whatever_is_tolerated(tolerated):
    assert "misrouted" in REJECTING & rejecting(tolerated)
