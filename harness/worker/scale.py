"""The scale of a cell: its nodes, ranks and devices, and the samples of each in a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

FACTORS = ("nodes", "ranks_per_node", "devices_per_rank", "batch", "global_batch")
"""What a study says of a cell's scale."""


@dataclass(frozen=True)
class Scale:
    """How many share a step, and how many samples each of them takes."""

    nodes: int = 1
    ranks_per_node: int = 1
    devices_per_rank: int = 1
    batch_per_device: int = 1
    is_strong: bool = False
    """Whether the study fixes the batch of a step, which more devices share (strong scaling)."""

    def __post_init__(self) -> None:
        counts = (self.nodes, self.ranks_per_node, self.devices_per_rank, self.batch_per_device)
        if min(counts) < 1:
            raise ValueError("a scale counts from 1, not {}".format(self))

    @staticmethod
    def of(factors: Mapping[str, Any]) -> Scale:
        """Make the scale that factors state; refuse a ``global_batch`` that does not divide."""
        batch, batch_of_all = factors["batch"], factors["global_batch"]
        counts = (factors["nodes"], factors["ranks_per_node"], factors["devices_per_rank"])
        if batch_of_all is None:
            return Scale(*counts, batch_per_device=batch)
        devices = Scale(*counts).devices
        if batch_of_all % devices:
            raise ValueError(
                "a global batch of {} does not divide among {} devices".format(
                    batch_of_all, devices
                )
            )
        return Scale(*counts, batch_per_device=batch_of_all // devices, is_strong=True)

    @property
    def ranks(self) -> int:
        """How many processes train together."""
        return self.nodes * self.ranks_per_node

    @property
    def devices(self) -> int:
        """How many devices compute a step."""
        return self.ranks * self.devices_per_rank

    @property
    def devices_per_node(self) -> int:
        """How many of them each node has."""
        return self.ranks_per_node * self.devices_per_rank

    @property
    def batch_per_rank(self) -> int:
        """Samples of a step that one rank takes, over all its devices."""
        return self.batch_per_device * self.devices_per_rank

    @property
    def batch_per_step(self) -> int:
        """Samples of a step, over all ranks; what a learning rate scales with."""
        return self.batch_per_device * self.devices
