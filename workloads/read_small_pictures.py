"""Describe reading: JPEG pictures, median 12 KB."""

from __future__ import annotations

from harness.worker.network.workload import Reading

WORKLOAD = Reading(
    name="read-small-pictures",
    title="Reading: JPEG pictures, median 12 KB",
    content="small-pictures",
    samples=9144,
)
