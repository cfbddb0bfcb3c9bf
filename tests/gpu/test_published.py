"""What a GPU day holds memory and copies to."""

from __future__ import annotations

import pytest

from tests.gpu import published
from tests.gpu.steps import ceilings

GEN5 = {"pcie.link.gen.max": "5", "pcie.link.width.max": "16"}


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("NVIDIA H100 80GB HBM3", 3350),
        ("NVIDIA H100 PCIe", 2000),
        ("NVIDIA H200", 4800),
        ("NVIDIA GH200 480GB", 4000),
        ("NVIDIA A100-SXM4-80GB", 2039),
        ("NVIDIA A100 80GB PCIe", 1935),
        ("Tesla V100-SXM2-32GB", 900),
        ("Tesla P100-SXM2-16GB", 732),
        ("NVIDIA L4", 300),
        ("NVIDIA L40S", 864),
    ],
)
def test_memory_is_that_of_the_model(name: str, rate: float) -> None:
    told = published.memory(name)
    assert told is not None
    assert told[0] == rate


def test_an_unknown_gpu_has_no_published_figure() -> None:
    assert published.memory("An invented GPU") is None
    assert published.link("An invented GPU", {"pcie.link.gen.max": "[N/A]"}) is None


def test_a_link_carries_what_its_lanes_do_unless_it_is_coherent() -> None:
    told = published.link("NVIDIA H100 80GB HBM3", GEN5)
    assert told == (pytest.approx(63.0, rel=0.001), "PCIe 5 x 16")
    assert (published.link("NVIDIA GH200 480GB", GEN5) or (0, ""))[0] == 450


def test_memory_and_copies_are_held_to_what_is_published() -> None:
    told = {
        "gpu-memory": {"bandwidth": "3 TB/s"},
        "host-to-device": {"bandwidth": "12 GB/s"},
        "device-to-host": {"bandwidth": "80 GB/s"},
    }
    moved = {
        "gpu-memory": (3350.0, "a data sheet"),
        **dict.fromkeys(("host-to-device", "device-to-host"), (63.0, "PCIe 5 x 16")),
    }
    lines, faults = ceilings.judged(told, {}, moved)
    assert "gpu-memory: 3 TB/s, 90% of the stated 3350 GB/s" in lines
    assert "host-to-device: far below what is stated" in lines
    assert faults == ("device-to-host: 80 GB/s is more than the stated 63 GB/s",)
