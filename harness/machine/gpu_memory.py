"""Tell which of Linux's memory is a GPU's own: NVIDIA's driver adds it beside Grace and POWER9."""

from __future__ import annotations

from pathlib import Path

from harness.machine.small_files import read_small


def of_gpus(root: Path) -> frozenset[int]:
    """Number the NUMA nodes that are GPUs' memory: no rank is bound to them."""
    texts = (
        read_small(folder / "numa_status")
        for folder in (root / "proc/driver/nvidia/gpus").glob("*")
    )
    lines = (line.partition(":") for text in texts for line in text.splitlines())
    return frozenset(
        int(number) for name, _, number in lines if name == "Node" and number.strip().isdecimal()
    )


def size_of_gpus(root: Path) -> int:
    """Add up their bytes, which MemTotal holds too."""
    found = 0
    for number in of_gpus(root):
        text = read_small(root / f"sys/devices/system/node/node{number}/meminfo")
        told = text.partition("MemTotal:")[2].split()
        found += int(told[0]) * 1024 if told and told[0].isdecimal() else 0
    return found
