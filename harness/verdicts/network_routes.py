"""Read which network carried the messages of a trial's ranks: from facts and from logs.

Every rank's facts count its TCP by interface (``harness/worker/facts/network_use.py``). NCCL and
UCX print which transport they chose where they are asked to: in a cell's probe, or, where nothing
is probed, in the trial itself, before anything is timed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from harness.errors import DamagedFile
from harness.store.events.rank_streams import Stream
from harness.store.layout import RunPaths, TrialPaths
from harness.store.records import TrialRecord
from harness.verdicts.route_claims import Claim, Route

_MOST = 1 << 20
# 'NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA', and without numbers before 2.6
_NCCL = re.compile(r"NCCL INFO Channel \d+(?:/\d+)? ?: \S+ -> \S+ (?:\[\w+\] )?via (\S+)")
_NET = re.compile(r"^(NET/[A-Za-z]+|COLLNET)[^/]*(?:/[^/]*)?(/GDRDMA)?")
# 'UCX INFO ... inter-node cfg#2 tag(rc_mlx5/mlx5_0:1)', and 'ep_cfg[2]: tag(tcp/eth0)' before 1.14
_UCX = re.compile(r"(?:inter-node cfg#\d+|ep_cfg\[\d+\]:) (.*)")
_LANE = re.compile(r"\b(\w+)/([\w:.]+)")
_WITHIN = ("self", "sysv", "posix", "cma", "knem", "xpmem", "cuda_copy", "cuda_ipc", "gdr_copy")


def transports(text: str) -> dict[str, int]:
    """Count what a log says of channels, by transport; NCCL's within a node are P2P and SHM."""
    found: Counter[str] = Counter()
    for match in _NCCL.finditer(text):
        net = _NET.match(match[1])
        found[match[1].partition("/")[0] if net is None else net[1] + (net[2] or "")] += 1
    for match in _UCX.finditer(text):
        for kind, device in _LANE.findall(match[1]):
            if kind not in _WITHIN:
                found[f"{kind}/{device}"] += 1
    return dict(found)


def claim(platform: Mapping[str, Any]) -> Claim:
    """Read what a platform claims of its network."""
    network = platform.get("network") or {}
    return Claim(str(network.get("fabric") or ""), str(network.get("interface") or ""))


def routes(paths: RunPaths, record: TrialRecord, streams: Sequence[Stream]) -> list[Route]:
    """Give the networks that each rank used; empty where all ran on one node."""
    hosts = record.hosts
    if len(set(hosts.values())) < 2:
        return []
    probe = paths.probe(record.outcome.cell_key)
    logs = probe if paths.files.exists(probe.outcome) else record.paths
    routes_found = []
    for stream in streams:
        used = stream.facts.get("network") or {}
        routes_found.append(
            Route(
                rank=f"rank {stream.rank} on {hosts.get(stream.rank, '?')}",
                sent={name: int(one.get("sent") or 0) for name, one in used.items()},
                transports=_of_rank(logs, stream.rank),
            )
        )
    return routes_found


def _of_rank(logs: TrialPaths, rank: int) -> dict[str, int]:
    found: Counter[str] = Counter()
    for log in (logs.stdout(rank), logs.stderr(rank)):
        with suppress(FileNotFoundError, DamagedFile):
            text = logs.files.read_begin(log, _MOST)
            if b"NCCL INFO" in text or b"UCX " in text:
                found.update(transports(text.decode(errors="replace")))
    return dict(found)
