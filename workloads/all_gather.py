"""Describe a collective: every rank's part in every rank."""

from __future__ import annotations

from harness.worker.network.workload import Collective

WORKLOAD = Collective(
    name="all-gather",
    title="All-gather: every rank's part in every rank",
    operation="all-gather",
)
