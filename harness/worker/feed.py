"""Describe the feed: a batch made once, on the device, and reused; or files to read.

Inputs are standard normal; class numbers are uniform, vectors standard normal. Each framework draws
them with its own generator: speed does not depend on their values, and where numbers must agree
(the gate) they travel as tensor folders (``tensors.py``). Every rank draws its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Tuple, Union

from harness.worker.network.workload import Checkpointing, Training, Workload
from harness.worker.place import Place

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
    batch: int
    """Samples in this rank's step, over all its devices."""
    global_batch: int
    """Samples in one step of all ranks; what a learning rate scales with."""
    input: Tuple[int, ...] = ()
    """One sample's shape, channels first."""
    targets: Optional[Targets] = None
    files: Optional[Files] = None
    """What batches are read from; None: one batch is made and kept."""


def describe(
    workload: Workload,
    factors: Mapping[str, Any],
    seed: int,
    place: Place,
    paths: Mapping[str, str] = {},
) -> Feed:
    """Describe what a rank is fed under the factors and paths of its job.

    What is only to be saved is trained for one step, on as few samples as batch norm allows.
    """
    if isinstance(workload, Checkpointing):
        smallest = {**factors, "batch": 2, "global_batch": None}
        return describe(workload.training, smallest, seed, place, paths)
    batch = _batch(factors, place.size)
    feed = Feed(
        seed=seed + place.rank,
        batch=batch,
        global_batch=batch * place.size,
        files=_files(factors, paths, seed, place),
    )
    if not isinstance(workload, Training):
        return feed
    from harness.worker.network.shapes import output_shapes  # only what trains has layers

    _, shape = output_shapes(workload.network)[-1]
    if len(shape) != 1:
        raise ValueError("the loss of {} needs a flat output, not {}".format(workload.name, shape))
    targets = TARGETS[workload.loss](shape[0])
    return replace(feed, input=workload.network.input, targets=targets)


def _files(
    factors: Mapping[str, Any], paths: Mapping[str, str], seed: int, place: Place
) -> Optional[Files]:
    if "data" not in paths:
        return None
    from harness.worker.input.files import described  # most trials read nothing

    return described(factors, paths["data"], seed, place, paths.get("meeting", ""))


def _batch(factors: Mapping[str, Any], size: int) -> int:
    """Give this rank's share: ``batch`` counts per device, ``global_batch`` over all ranks."""
    whole = factors.get("global_batch")
    if whole is None:
        return int(factors.get("batch") or 1) * int(factors.get("devices_per_rank") or 1)
    if whole % size:
        raise ValueError("a global batch of {} does not divide over {} ranks".format(whole, size))
    return int(whole // size)
