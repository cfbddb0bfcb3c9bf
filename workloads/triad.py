"""Describe a ceiling: what the memory gives."""

from __future__ import annotations

from harness.worker.network.workload import Ceiling

WORKLOAD = Ceiling(
    name="triad",
    title="a = b + s c over arrays larger than any cache",
    kernel="triad",
    unit="bytes",
    size=2**28,
    device_size=2**30,
)
