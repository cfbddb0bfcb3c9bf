"""Describe a ceiling: what a storage tier gives to a reader."""

from __future__ import annotations

from harness.worker.network.workload import Ceiling

WORKLOAD = Ceiling(
    name="storage-read",
    title="Large reads past the page cache",
    kernel="read",
    unit="bytes",
    size=2**24,
    device_size=2**24,
)
