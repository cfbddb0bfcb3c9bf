"""Describe reading: JPEG pictures, median 112 KB."""

from __future__ import annotations

from harness.worker.network.workload import Reading

WORKLOAD = Reading(
    name="read-pictures",
    title="Reading: JPEG pictures, median 112 KB",
    content="pictures",
    samples=16384,
)
