"""Say what a workload is: what one step does, in words no framework owns.

A module in ``workloads/`` has one constant, ``WORKLOAD``. Kinds beside ``Training`` (files to read,
checkpoints to write, messages to reduce, ceilings to calibrate) are further dataclasses here, each
with a ``kind``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Tuple, Union

if TYPE_CHECKING:
    from harness.worker.network.layers import Network


@dataclass(frozen=True)
class SGD:
    """Heavy-ball momentum as torch writes it: v = m v + g + d w; w = w - rate v.

    Weight decay touches the weights of convolutions and dense layers only. With ``rate_batch`` the
    rate is scaled by the batch of a step over it.
    """

    rate: float
    momentum: float = 0.9
    weight_decay: float = 0.0
    rate_batch: Optional[int] = None


@dataclass(frozen=True)
class Adam:
    """Adam with bias correction."""

    rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8


@dataclass(frozen=True)
class AdamW:
    """Adam with bias correction, and weight decay beside it: w = w - rate (decay w + Adam's step).

    Decay touches weights alone, which have two dimensions or more: no bias, no norm. With ``clip``
    all gradients of a step are scaled by clip / norm, where the norm of all together is above it.
    """

    rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.01
    clip: Optional[float] = None


Optimiser = Union[SGD, Adam, AdamW]

MOMENTS = {SGD: ("velocity",), Adam: ("first", "second"), AdamW: ("first", "second")}
"""What an optimiser keeps of each parameter, as the formulas of its class and of Adam's paper name
it: v is SGD's velocity. A framework that keeps something else (rate times v) converts."""

LOSSES = (
    "cross-entropy",
    "mean-squared-error",
    "token-cross-entropy",
    "token-and-pair-cross-entropy",
)
"""Mean over the samples, whose targets are class numbers; mean over samples and outputs, whose
targets are vectors; mean over the positions of all samples, whose targets are class numbers each,
or ``MASKED``: those count in nothing; that plus the mean over the samples of two heads, where a
target's last number is the class of the sample, one of two."""

TOKENS = "tokens"
"""The unit of work of networks that are fed texts: a sample is as many as its sequence is long."""

MASKED = -1
"""The target of a position that no loss is taken of."""


@dataclass(frozen=True)
class DataSet:
    """The standard data set that an epoch means for this workload."""

    name: str
    samples: int


@dataclass(frozen=True)
class Training:
    """Train a network: forward, loss, backward, update.

    ``loss`` is one of ``LOSSES``. Weights start the same way everywhere: convolutions
    Kaiming-normal by fan-out, dense layers and tables normal around 0 with the deviation that each
    states, biases 0, gammas 1.
    ``parameters`` and ``macs`` are the published identity, asserted before anything is timed.
    """

    name: str
    title: str
    unit: str
    network: Network
    loss: str
    optimiser: Optimiser
    data: DataSet
    parameters: int
    macs: int
    content: str = ""
    """What made files hold for it: pictures, volumes …; empty: it is not fed from files."""
    shallow: Optional[Network] = None
    """What the gate examines in its place: the same words in fewer and smaller blocks."""
    kind: str = "train"


@dataclass(frozen=True)
class LayerAlone:
    """One layer of a network by itself, on numbers that are drawn once: no loss and no update.

    ``training`` is of a network of that layer alone, ``path`` where it stands in its own, and
    ``passes`` one of ``alone.PASSES``. Such workloads have no module: ``alone.py`` derives them.
    """

    name: str
    title: str
    unit: str
    training: Training
    path: str
    passes: str
    to_input: bool
    """Whether the gradient of its input is asked for, as of all but what is given."""
    kind: str = "layer"


@dataclass(frozen=True)
class Nothing:
    """A step that does no work: what the harness itself costs."""

    name: str
    title: str
    unit: str = "steps"
    kind: str = "nothing"


@dataclass(frozen=True)
class Ceiling:
    """A kernel that asks one thing of a machine, as much of it as there is.

    ``kernel`` is one of ``gemm`` (a product of two square matrices), ``convolution`` (3 x 3,
    stride 1), ``triad`` (a = b + s c, as STREAM counts it), ``to-device``, ``from-device``
    (copies from and to pinned memory), ``read`` and ``write`` (large requests past the page
    cache, on the storage tier of the cell). ``size`` says how large on a CPU, ``device_size``
    on an accelerator: rows of a matrix, images, or bytes of one array or request.
    """

    name: str
    title: str
    kernel: str
    unit: str
    size: int
    device_size: int
    kind: str = "ceiling"


@dataclass(frozen=True)
class Reading:
    """Read samples in whole epochs and do nothing with them: the input chain alone.

    ``content`` names what the samples are (``harness/data/contents.py`` makes them), ``samples``
    how many there are where a study does not say.
    """

    name: str
    title: str
    content: str
    samples: int
    unit: str = "samples"
    kind: str = "read"


@dataclass(frozen=True)
class Opening:
    """Open, stat and close every file of a set, in whole epochs, and read none."""

    name: str
    title: str
    content: str
    samples: int
    unit: str = "files"
    kind: str = "read"


@dataclass(frozen=True)
class Checkpointing:
    """Save what training a network would have to keep: weights, statistics, optimiser's state.

    It is trained for one step, which makes the optimiser's state, and no more.
    """

    name: str
    title: str
    training: Training
    unit: str = "MB"
    kind: str = "checkpoint"


@dataclass(frozen=True)
class Collective:
    """Exchange a message between all ranks and compute nothing.

    ``operation`` is one of ``all-reduce`` (a sum of float32), ``all-gather`` (the message is what
    every rank holds at the end), ``broadcast`` (from rank 0) and ``point-to-point`` (each rank
    sends to the next and receives from the one before). A step is one of them.
    """

    name: str
    title: str
    operation: str
    message_bytes: int = 2**22
    """Where a study does not say."""
    unit: str = "bytes"
    kind: str = "collective"


Workload = Union[
    Training, LayerAlone, Nothing, Ceiling, Reading, Opening, Checkpointing, Collective
]
Shape = Tuple[int, ...]


def learning_rate(optimiser: Optimiser, batch_per_step: int) -> float:
    """Give the rate for the batch of a step, scaled where the optimiser says so."""
    if isinstance(optimiser, SGD) and optimiser.rate_batch is not None:
        return optimiser.rate * batch_per_step / optimiser.rate_batch
    return optimiser.rate


def work_per_sample(unit: str, factors: Mapping[str, Any]) -> int:
    """Say how many units of its work a cell's sample is: of tokens, its sequence's length."""
    return int(factors["sequence"]) if unit == TOKENS else 1


def clip(optimiser: Optimiser) -> Optional[float]:
    """Give the norm that all gradients of a step may have together; None: any."""
    return optimiser.clip if isinstance(optimiser, AdamW) else None


def task(workload: str, factors: Mapping[str, Any]) -> str:
    """Name a cell's work, so that only like is compared with like.

    That is its workload; where reading is the work, also what stands for a model beside it:
    ``read-pictures``, ``read-pictures + 100 ms burn``.
    """
    stand_in = factors.get("compute") or "none"
    if stand_in == "none":
        return workload
    return f"{workload} + {factors.get('compute_ms') or 0:g} ms {stand_in}"
