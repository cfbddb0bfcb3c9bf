"""Describe reading: volumes of 12 × 128³."""

from __future__ import annotations

from harness.worker.network.workload import Reading

WORKLOAD = Reading(
    name="read-deep-volumes",
    title="Reading: Volumes of 12 × 128³",
    content="deep-volumes",
    samples=8192,
)
