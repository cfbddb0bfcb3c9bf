"""Which transport was chosen is read from what NCCL and UCX print while they start."""

from __future__ import annotations

import json
from pathlib import Path

from harness.analysis.analyse import analyse
from harness.store.dataset import Dataset
from harness.store.layout import TrialPaths
from harness.verdicts.network_routes import transports
from tests.outcomes import record, seal
from tests.runs import RecordedCell, Recording, write_run

NCCL = """
cn1:4242:4301 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.1.0.1<0>
cn1:4242:4301 [0] NCCL INFO Channel 00/02 :    0   1   2   3
cn1:4242:4301 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC/read
cn1:4242:4301 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via SHM/direct/direct
cn1:4242:4301 [0] NCCL INFO Channel 00/0 : 3[1] -> 0[0] [receive] via NET/IB/0/GDRDMA
cn1:4242:4301 [0] NCCL INFO Channel 01/0 : 3[1] -> 0[0] [receive] via NET/IB/1
cn1:4242:4301 [0] NCCL INFO Channel 00 : 0[1b000] -> 2[1b000] [send] via NET/Socket/0
"""
UCX = """
[1587657592.1] [cn1:42:0] ucp_worker.c:1855 UCX  INFO  ep_cfg[0]: tag(self/memory cma/memory)
[1587657592.2] [cn1:42:0] parser.c:2036 UCX  INFO  inter-node cfg#2 tag(rc_mlx5/mlx5_0:1)
[1587657592.3] [cn1:42:0] parser.c:2036 UCX  INFO  ep_cfg[3]: tag(tcp/eth0)
"""


def test_channels_of_nccl_are_counted_by_transport():
    assert transports(NCCL) == {
        "P2P": 1,
        "SHM": 1,
        "NET/IB/GDRDMA": 1,
        "NET/IB": 1,
        "NET/Socket": 1,
    }


def test_lanes_of_ucx_are_counted_by_transport_and_device():
    assert transports(UCX) == {"rc_mlx5/mlx5_0:1": 1, "tcp/eth0": 1}


def test_a_trial_over_sockets_under_a_claim_of_infiniband_is_misrouted_and_not_counted(tmp_path):
    cell = RecordedCell(factors={"nodes": 2, "strategy": "ddp"})
    platform = {"name": "ours", "network": {"fabric": "InfiniBand HDR"}}
    run = write_run(tmp_path, [cell], Recording(platform=platform))
    for trial in run.glob("cells/*/trial-*"):
        _on_two_nodes(trial, sent=10**8)
    (told,) = analyse(Dataset([run])).cells
    assert {trial.verdict for trial in told.trials} == {"misrouted"}
    assert told.trials[0].evidence[0].startswith("rank 0 on cn0 sent 100.0 MB through sockets")
    assert told.rate is None


def test_the_words_of_the_probe_stand_for_all_trials_of_its_cell(tmp_path):
    cell = RecordedCell(factors={"nodes": 2, "strategy": "ddp"})
    platform = {"name": "ours", "network": {"fabric": "InfiniBand HDR"}}
    run = write_run(tmp_path, [cell], Recording(platform=platform))
    for trial in run.glob("cells/*/trial-*"):
        _on_two_nodes(trial, sent=0)
    probe = run / "cells" / cell.key / "probe"
    probe.mkdir()
    record(TrialPaths(probe))
    (probe / "rank.1.out").write_text(NCCL)
    (told,) = analyse(Dataset([run])).cells
    assert "rank 1 on cn1 talked through NET/Socket (1)" in told.trials[0].evidence[0]


def _on_two_nodes(trial: Path, *, sent: int) -> None:
    """Let a recorded trial's ranks sit on two nodes, and say what their sockets carried."""
    outcome = json.loads((trial / "outcome.json").read_text())
    for rank in outcome["ranks"]:
        rank["host"] = f"cn{rank['rank']}"
    (trial / "outcome.json").write_text(json.dumps(outcome))
    for events in trial.glob("events.*.jsonl"):
        network = {"eth0": {"sent": sent, "received": sent, "connections": 1, "retransmits": 0}}
        with events.open("a") as file:
            file.write(json.dumps({"event": "facts", "facts": {"network": network}}) + "\n")
    seal(TrialPaths(trial))
