"""Describe the feed: a batch made once, on the device, and reused; or files to read.

Inputs are standard normal; class numbers are uniform, vectors standard normal. Each framework draws
them with its own generator: speed does not depend on their values, and where numbers must agree
(the gate) they travel as tensor folders (``tensors.py``). Tokens are drawn alike for all
(``tokens.py``), since speed depends on them. Every rank draws its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Callable, Dict, Optional, Tuple, Union

from harness.worker.network.workload import TOKENS, Checkpointing, Training, Workload
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


@dataclass(frozen=True)
class TokenClasses:
    """One class number below ``count`` at each of ``length`` positions: the token that follows."""

    length: int
    count: int


@dataclass(frozen=True)
class TokenAndPairClasses:
    """Class numbers of ``length`` positions below ``count``, and behind them one of two."""

    length: int
    count: int


Targets = Union[Classes, Vectors, TokenClasses, TokenAndPairClasses]


def _flat(output: Tuple[int, ...]) -> int:
    if len(output) != 1:
        raise ValueError("its loss needs a flat output, not {}".format(output))
    return output[0]


def _of_positions(output: Tuple[int, ...]) -> TokenClasses:
    from harness.worker.network.rule import SequenceShape  # only what trains has layers

    if isinstance(output, SequenceShape):
        return TokenClasses(*output)
    raise ValueError("its loss needs an output at each position, not {}".format(output))


def _of_heads(output: Tuple[int, ...]) -> TokenAndPairClasses:
    from harness.worker.network.rule import HeadsShape  # only what trains has layers

    if isinstance(output, HeadsShape) and output.numbers == 2:
        return TokenAndPairClasses(output.length, output.features)
    raise ValueError("its loss needs two heads, one of two numbers, not {}".format(output))


TARGETS: Dict[str, Callable[[Tuple[int, ...]], Targets]] = {
    "cross-entropy": lambda output: Classes(_flat(output)),
    "mean-squared-error": lambda output: Vectors(_flat(output)),
    "token-cross-entropy": _of_positions,
    "token-and-pair-cross-entropy": _of_heads,
}
"""What each loss compares an output of that shape with."""


@dataclass(frozen=True)
class Feed:
    """One rank's batch; a workload without a network has no input and no targets."""

    seed: int
    """This rank's own."""
    scale: Scale
    input: Tuple[int, ...] = ()
    """One sample's shape, channels first; of tokens, how many."""
    vocabulary: Optional[int] = None
    """Below what the tokens are that are fed; None: what is fed are numbers."""
    targets: Optional[Targets] = None
    files: Optional[Files] = None
    """What batches are read from; None: one batch is made and kept."""
    work_per_sample: int = 1
    """What a sample is in the workload's unit: as many tokens as it has, or one."""

    @property
    def work_per_rank(self) -> float:
        """What this rank's step gets through, in the workload's unit."""
        return float(self.batch_per_rank * self.work_per_sample)

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
    from harness.worker.network import shapes  # only what trains has layers

    network = workload.network
    _, output = shapes.output_shapes(network)[-1]
    try:
        targets = TARGETS[workload.loss](output)
    except ValueError as fault:
        raise ValueError("{}: {}".format(workload.name, fault)) from None
    below = shapes.vocabulary(network)
    work = work_per_sample(workload)
    return replace(
        feed, input=network.input, vocabulary=below, targets=targets, work_per_sample=work
    )


def work_per_sample(workload: Training) -> int:
    """Say what a sample is in the workload's unit: as many tokens as it has, or one."""
    return workload.network.input[0] if workload.unit == TOKENS else 1
