"""Describe the feed: a batch made once, on the device, and reused; or files to read.

Inputs are standard normal; class numbers are uniform, vectors standard normal. Each framework draws
them with its own generator: speed does not depend on their values, and where numbers must agree
(the gate) they travel as tensor folders (``tensors.py``). Every rank draws its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Callable, Dict, Optional, Tuple, Union

from harness.worker.network.workload import Checkpointing, Training, Workload
from harness.worker.place import Place
from harness.worker.scale import Scale

if TYPE_CHECKING:
    from harness.worker.input.files import Files


@dataclass(frozen=True)
class Classes:
    """One class number per sample, below ``count``."""

    count: int


@dataclass(frozen=True)
class Vectors:
    """One vector of ``length`` numbers per sample."""

    length: int


Targets = Union[Classes, Vectors]

TARGETS: Dict[str, Callable[[int], Targets]] = {
    "cross-entropy": Classes,
    "mean-squared-error": Vectors,
}
"""What each loss compares an output of so many numbers with."""


@dataclass(frozen=True)
class Feed:
    """One rank's batch; a workload without a network has no input and no targets."""

    seed: int
    """This rank's own."""
    scale: Scale
    input: Tuple[int, ...] = ()
    """One sample's shape, channels first."""
    targets: Optional[Targets] = None
    files: Optional[Files] = None
    """What batches are read from; None: one batch is made and kept."""

    @property
    def batch_per_rank(self) -> int:
        """Samples in this rank's step, over all its devices."""
        return self.scale.batch_per_rank

    @property
    def batch_per_step(self) -> int:
        """Samples in one step of all ranks; what a learning rate scales with."""
        return self.scale.batch_per_step


def describe(
    workload: Workload, scale: Scale, *, seed: int, place: Place, files: Optional[Files] = None
) -> Feed:
    """Describe what a rank is fed at its job's scale; refuse a place that is not of this scale.

    What is only to be saved is trained for one step, on as few samples as batch norm allows.
    """
    if place.size != scale.ranks:
        raise ValueError(
            "a job of {} ranks was started with {} (launcher: {})".format(
                scale.ranks, place.size, place.launcher
            )
        )
    if isinstance(workload, Checkpointing):
        smallest = replace(scale, batch_per_device=2)
        return describe(workload.training, smallest, seed=seed, place=place, files=files)
    feed = Feed(seed=seed + place.rank, scale=scale, files=files)
    if not isinstance(workload, Training):
        return feed
    from harness.worker.network.shapes import output_shapes  # only what trains has layers

    _, shape = output_shapes(workload.network)[-1]
    if len(shape) != 1:
        raise ValueError("the loss of {} needs a flat output, not {}".format(workload.name, shape))
    targets = TARGETS[workload.loss](shape[0])
    return replace(feed, input=workload.network.input, targets=targets)
