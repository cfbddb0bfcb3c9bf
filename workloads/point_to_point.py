"""Describe a collective: each rank sends to the next."""

from __future__ import annotations

from harness.worker.network.workload import Collective

WORKLOAD = Collective(
    name="point-to-point",
    title="Point to point: each rank sends to the next",
    operation="point-to-point",
)
