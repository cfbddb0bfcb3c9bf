"""Describe a ceiling: what the link from the device gives."""

from __future__ import annotations

from harness.worker.network.workload import Ceiling

WORKLOAD = Ceiling(
    name="copy-from-device",
    title="A copy from the device to pinned host memory",
    kernel="from-device",
    unit="bytes",
    size=2**28,
    device_size=2**28,
)
