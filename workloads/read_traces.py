"""Describe reading: traces of 4 × 1600."""

from __future__ import annotations

from harness.worker.network.workload import Reading

WORKLOAD = Reading(
    name="read-traces",
    title="Reading: Traces of 4 × 1600",
    content="traces",
    samples=65536,
)
