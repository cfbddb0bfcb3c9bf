"""Describe a ceiling: what a dense layer can reach at best."""

from __future__ import annotations

from harness.worker.network.workload import Ceiling

WORKLOAD = Ceiling(
    name="gemm",
    title="A product of two square matrices",
    kernel="gemm",
    unit="FLOP",
    size=2048,
    device_size=8192,
)
