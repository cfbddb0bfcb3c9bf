"""Give the most that a GPU can multiply and add: what its vendor states, else what its cores imply.

Stated are peaks without sparsity, of one device as the driver counts them: a Tesla K80 and an
Instinct MI250X are two. Other NVIDIA GPUs follow from what the driver says: each core multiplies
and adds once in a cycle of the highest clock, and the tensor cores of a generation do so many times
as much (CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions"; the rows below
are of the same ratios).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.worker.network.precisions import precision_of


@dataclass(frozen=True)
class GpuPeak:
    """What one GPU can do, in TFLOP/s, and the document that says so."""

    fp32: float
    tf32: float
    half: float
    source: str

    def of(self, precision: str) -> float:
        """Give the peak in a precision."""
        peaks = {"tf32": self.tf32, "bf16": self.half, "fp16": self.half}
        return peaks.get(precision_of(precision).products, self.fp32)


_STATED: Sequence[tuple[str, GpuPeak]] = (
    (r"GB200", GpuPeak(90, 1250, 2500, "NVIDIA Blackwell datasheet")),
    (r"B200", GpuPeak(80, 1125, 2250, "NVIDIA Blackwell datasheet")),
    (r"H100|H200|H800|GH200", GpuPeak(67, 495, 990, "NVIDIA H100 GPU Architecture")),
    (r"\bL40S\b", GpuPeak(91.6, 183, 362, "NVIDIA L40S datasheet")),
    (r"\bL40\b", GpuPeak(90.5, 90.5, 181, "NVIDIA L40 datasheet")),
    (r"\bL4\b", GpuPeak(30.3, 60, 121, "NVIDIA L4 datasheet")),
    (r"RTX 4090", GpuPeak(82.6, 82.6, 330, "NVIDIA Ada GPU Architecture")),
    (r"A100|A800", GpuPeak(19.5, 156, 312, "NVIDIA A100 datasheet")),
    (r"\bA40\b", GpuPeak(37.4, 74.8, 150, "NVIDIA A40 datasheet")),
    (r"V100(?!S)", GpuPeak(15.7, 15.7, 125, "NVIDIA Tesla V100 GPU Architecture")),
    (r"\bT4\b", GpuPeak(8.1, 8.1, 65, "NVIDIA T4 datasheet")),
    (r"P100", GpuPeak(10.6, 10.6, 21.2, "NVIDIA Tesla P100 white paper")),
    (r"K80", GpuPeak(4.37, 4.37, 4.37, "NVIDIA Tesla K80 board specification")),
    (r"MI300X", GpuPeak(163, 163, 1307, "AMD Instinct MI300X data sheet")),
    (r"MI250X?", GpuPeak(47.9, 47.9, 191.5, "AMD Instinct MI250X data sheet")),
)
# by compute capability, up to the next: how much faster than fp32's cores TF32 and half precision
_TENSOR: Sequence[tuple[tuple[int, int], tuple[int, int]]] = (
    ((12, 0), (2, 4)),
    ((10, 0), (16, 32)),
    ((9, 0), (8, 16)),
    ((8, 6), (2, 4)),
    ((8, 0), (8, 16)),
    ((7, 0), (1, 8)),
    ((6, 1), (1, 1)),
    ((6, 0), (1, 2)),
    ((3, 0), (1, 1)),
)


def gpu_peak(name: str | None, machine: Any) -> GpuPeak | None:
    """Give the peak of a GPU by its name; ``machine`` is what is recorded of the trial's node."""
    for pattern, peak in _STATED:
        if re.search(pattern, name or ""):
            return peak
    gpus = machine.get("gpus") if isinstance(machine, Mapping) else None
    return next((_implied(one) for one in gpus or () if _is_called(one, name)), None)


def _is_called(gpu: Any, name: str | None) -> bool:
    return isinstance(gpu, Mapping) and name is not None and gpu.get("name") == name


def _implied(gpu: Mapping[str, Any]) -> GpuPeak | None:
    cores, clock, capability = (
        gpu.get(key) for key in ("cores", "highest_clock_hz", "compute_capability")
    )
    if not cores or not clock or not capability:
        return None
    single = 2 * cores * clock / 1e12
    whole = int(capability[0]), int(capability[1])
    tensor, half = next((times for since, times in _TENSOR if whole >= since), (1, 1))
    return GpuPeak(single, tensor * single, half * single, "its cores and clock, by the driver")
