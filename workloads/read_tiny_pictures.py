"""Describe reading: pictures of 32 × 32, not encoded."""

from __future__ import annotations

from harness.worker.network.workload import Reading

WORKLOAD = Reading(
    name="read-tiny-pictures",
    title="Reading: pictures of 32 × 32, not encoded",
    content="tiny-pictures",
    samples=50_000,
)
