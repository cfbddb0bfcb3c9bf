"""Describe a ceiling: what the link to the device gives."""

from __future__ import annotations

from harness.worker.network.workload import Ceiling

WORKLOAD = Ceiling(
    name="copy-to-device",
    title="A copy from pinned host memory to the device",
    kernel="to-device",
    unit="bytes",
    size=2**28,
    device_size=2**28,
)
