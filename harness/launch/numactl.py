"""Decide from which memory a rank allocates, as options of numactl(8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.errors import UsageError
from harness.machine.topology import FAST, Topology


@dataclass(frozen=True)
class MemoryPolicy:
    """Options of numactl, and the same for people."""

    options: tuple[str, ...] = ()
    words: str = "any memory"

    def wrap(self, argv: Iterable[str]) -> tuple[str, ...]:
        """Start a command under this policy."""
        return ("numactl", *self.options, "--", *argv) if self.options else tuple(argv)


def memory_policy(name: str, topology: Topology, cpus: Iterable[int]) -> MemoryPolicy:
    """Turn a policy's name into numactl's options for a rank on these CPUs."""
    near = topology.near(cpus)
    numbers = ",".join(str(one.number) for one in near)
    if name == "any" or not near:
        return MemoryPolicy()
    if name == "local":
        slow = ",".join(str(one.number) for one in near if one.kind not in FAST)
        return MemoryPolicy(("--localalloc",), f"the nearest memory (node {slow or numbers})")
    if name == "interleave":
        return MemoryPolicy((f"--interleave={numbers}",), f"nodes {numbers} in turn")
    fast = [one for one in near if one.kind in FAST]
    if not fast:
        cached = next((one for one in near if one.cache), None)
        why = (
            "its fast memory is a cache, which all ranks use anyway"
            if cached
            else ("this node has no fast memory (MCDRAM or HBM) that programs can choose")
        )
        raise UsageError(f"binding.memory is {name}, but {why}")
    kinds = "/".join(sorted({one.kind for one in fast}))
    if name == "fast-only":
        numbers = ",".join(str(one.number) for one in fast)
        return MemoryPolicy((f"--membind={numbers}",), f"{kinds} only (node {numbers})")
    first = fast[0]  # numactl prefers one node; ranks that span several should be more ranks
    return MemoryPolicy(
        (f"--preferred={first.number}",), f"{first.kind} first (node {first.number}), then DDR"
    )
