"""Describe a ceiling: what a storage tier takes from a writer."""

from __future__ import annotations

from harness.worker.network.workload import Ceiling

WORKLOAD = Ceiling(
    name="storage-write",
    title="Large writes, each made durable",
    kernel="write",
    unit="bytes",
    size=2**24,
    device_size=2**24,
)
