"""Describe reading: volumes of 4 × 128³."""

from __future__ import annotations

from harness.worker.network.workload import Reading

WORKLOAD = Reading(
    name="read-volumes",
    title="Reading: Volumes of 4 × 128³",
    content="volumes",
    samples=512,
)
