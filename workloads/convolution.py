"""Describe a ceiling: what a convolution can reach at best."""

from __future__ import annotations

from harness.worker.network.workload import Ceiling

WORKLOAD = Ceiling(
    name="convolution",
    title="A 3 x 3 convolution of 128 channels at 56 x 56",
    kernel="convolution",
    unit="FLOP",
    size=16,
    device_size=256,
)
