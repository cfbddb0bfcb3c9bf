"""What is published of a GPU's memory and of its link to the host, by the names that NVML gives."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.gpu.nvidia_smi import number

_MEMORY: tuple[tuple[str, float, str], ...] = (
    # the first that fits; GB/s of one GPU
    (r"GB200|B200", 8000, "NVIDIA Blackwell datasheet"),
    (r"GH200 144G", 4900, "NVIDIA GH200 datasheet"),
    (r"GH200", 4000, "NVIDIA GH200 datasheet"),
    (r"H200", 4800, "NVIDIA H200 datasheet"),
    (r"H100 NVL", 3900, "NVIDIA H100 datasheet"),
    (r"H100 PCIe", 2000, "NVIDIA H100 datasheet"),
    (r"H100 80GB HBM3", 3350, "NVIDIA H100 datasheet"),
    (r"A100-SXM4-80GB", 2039, "NVIDIA A100 datasheet"),
    (r"A100 80GB PCIe", 1935, "NVIDIA A100 datasheet"),
    (r"A100-(SXM4|PCIE)-40GB", 1555, "NVIDIA A100 datasheet"),
    (r"\bA40\b", 696, "NVIDIA A40 datasheet"),
    (r"\bL40S?\b", 864, "NVIDIA L40 and L40S datasheets"),
    (r"\bL4\b", 300, "NVIDIA L4 datasheet"),
    (r"RTX 4090", 1008, "NVIDIA Ada GPU Architecture"),
    (r"V100S", 1134, "NVIDIA V100 datasheet"),
    (r"V100", 900, "NVIDIA V100 datasheet"),
    (r"\bT4\b", 320, "NVIDIA T4 datasheet"),
    (r"P100-PCIE-12GB", 549, "NVIDIA Tesla P100 datasheet"),
    (r"P100", 732, "NVIDIA Tesla P100 datasheet"),
)
_LANE = {1: 0.25, 2: 0.5, 3: 8 * 128 / 130 / 8, 4: 16 * 128 / 130 / 8, 5: 32 * 128 / 130 / 8}
"""GB/s of a lane in one direction, by generation of PCI Express: its rate, less its line code."""
_COHERENT = (r"GH200|GB200", 450.0, "NVLink-C2C, NVIDIA GH200 datasheet")

Stated = tuple[float, str]
"""GB/s, and who says so."""


def memory(name: str) -> Stated | None:
    """Give what the vendor states of the memory of a GPU."""
    found = ((rate, source) for pattern, rate, source in _MEMORY if re.search(pattern, name))
    return next(found, None)


def link(name: str, told: Mapping[str, str]) -> Stated | None:
    """Give what a GPU's link to the host carries one way, by its widest and newest."""
    pattern, rate, source = _COHERENT
    if re.search(pattern, name):
        return rate, source
    lanes, generation = (number(told.get(f"pcie.link.{one}.max")) for one in ("width", "gen"))
    if not lanes or generation not in _LANE:
        return None
    return lanes * _LANE[int(generation)], f"PCIe {generation:.0f} x {lanes:.0f}"
