"""Describe a collective: rank 0's message in every rank."""

from __future__ import annotations

from harness.worker.network.workload import Collective

WORKLOAD = Collective(
    name="broadcast",
    title="Broadcast: rank 0's message in every rank",
    operation="broadcast",
)
