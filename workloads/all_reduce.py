"""Describe a collective: a sum of float32 in every rank."""

from __future__ import annotations

from harness.worker.network.workload import Collective

WORKLOAD = Collective(
    name="all-reduce",
    title="All-reduce: a sum of float32 in every rank",
    operation="all-reduce",
)
