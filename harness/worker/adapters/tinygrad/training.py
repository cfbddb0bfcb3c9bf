"""The training step: forward, loss, gradients, update, and every change at once.

All that a step changes is assigned in place and realised together, so that one capture of TinyJit
holds the whole step. The updates are written out: ``nn.optim`` keeps moments and rates in fp32, and
a gate in float64 could not see through that.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import numpy
from tinygrad import Tensor, dtypes

from harness.worker.adapters.tinygrad.lowering import Lowered, Pass, Tensors
from harness.worker.attribution.marks import LOSS, UPDATE
from harness.worker.feed import Feed
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor as Given
from harness.worker.network.layers import Dropout
from harness.worker.network.rule import Parameter
from harness.worker.network.shapes import parameters, statistics
from harness.worker.network.tokens import texts
from harness.worker.network.words import lowering_of
from harness.worker.network.workload import (
    MASKED,
    MOMENTS,
    SGD,
    Adam,
    AdamW,
    Training,
    clip,
    learning_rate,
)

Changes = List[Tuple[Any, Any]]


class Trainer:
    """A network with its weights, statistics and the optimiser's state."""

    def __init__(self, workload: Training, seed: int, kind: str = "float32") -> None:
        self.workload = workload
        self.net = Lowered(workload.network)
        self.kind = kind
        self.drops = any(
            isinstance(site.layer, Dropout) and site.layer.rate for site in self.net.sites.values()
        )
        self.parameters: Tensors = {}
        self.statistics: Tensors = {}
        draw = numpy.random.default_rng(seed)
        for site in self.net.sites.values():
            for name, held in parameters(site):
                self.parameters[name] = self.tensor(_initial(held, draw))
            for name, held in statistics(site):
                self.statistics[name] = self.tensor(_initial(held, draw))
        self._optimiser = lowering_of(OPTIMISERS, type(workload.optimiser), "tinygrad")
        self.moments: List[Tensors] = [
            {name: self.tensor(numpy.zeros(value.shape)) for name, value in self.parameters.items()}
            for _ in range(self._optimiser.moments)
        ]
        self.powers = [self.tensor(numpy.ones(1)) for _ in range(self._optimiser.powers)]

    def tensor(self, array: Any) -> Any:
        """Put an array on the device, in this trainer's type."""
        return Tensor(array.astype(self.kind)).realize()

    def loss(self, x: Any, target: Any, kept: Optional[Tensors] = None) -> Tuple[Any, Any, Pass]:
        """Give loss, output, and what the layers left behind."""
        one = Pass(self.parameters, self.statistics, self.drops and kept is None, {}, kept)
        output = self.net.run(x, one)
        with self.net.mark(LOSS):
            loss = lowering_of(LOSSES, self.workload.loss, "tinygrad")(output, target)
        return loss, output, one

    def step(self, x: Any, target: Any, batch_per_step: int) -> Any:
        """Run one training step; give its loss."""
        loss, _, one = self.loss(x, target)
        slopes = loss.gradient(*self.parameters.values())
        rate = learning_rate(self.workload.optimiser, batch_per_step)
        with self.net.mark(UPDATE):
            named = self._clipped(dict(zip(self.parameters, slopes)))
            changes = self._optimiser.update(self, self.workload.optimiser, named, rate)
        changes += [(self.statistics[name], value) for name, value in one.updated.items()]
        return loss.realize(*[old.assign(new) for old, new in changes])

    def _clipped(self, slopes: Tensors) -> Tensors:
        """Scale all gradients by what their norm is above the most."""
        most = clip(self.workload.optimiser)
        if most is None:
            return slopes
        squares = [slope.square().sum() for slope in slopes.values()]
        factor = (most / squares[0].usum(*squares[1:]).sqrt()).minimum(1)
        return {name: slope * factor for name, slope in slopes.items()}

    def load(self, state: Mapping[str, Given]) -> None:
        """Set, in place, what is given of weights, statistics, moments and step count."""
        for name, tensor in self._kept():
            if name in state:
                put(tensor, array_of(state[name]))
        if "step" in state:
            updates = float(array_of(state["step"]))
            rule: Any = self.workload.optimiser
            for power, beta in zip(self.powers, (rule.beta1, rule.beta2)):
                put(power, numpy.full(1, beta**updates))

    def state(self) -> Iterator[Made]:
        """Give what a step changes."""
        for name, tensor in self._kept():
            yield made(name, tensor, numpy.float32)

    def _kept(self) -> Iterator[Tuple[str, Any]]:
        """Give weights, statistics and moments by their canonical names."""
        yield from self.parameters.items()
        yield from self.statistics.items()
        for moment, tensors in zip(MOMENTS[type(self.workload.optimiser)], self.moments):
            for name, tensor in tensors.items():
                yield "{}/{}".format(name, moment), tensor

    def adam(self, rule: Any, slopes: Mapping[str, Any], rate: float) -> Changes:
        """Say what Adam or AdamW makes of the moments, the powers of betas and the weights."""
        changes: Changes = []
        betas = (rule.beta1, rule.beta2)
        powers = [power * beta for power, beta in zip(self.powers, betas)]
        changes += zip(self.powers, powers)
        for name, slope in slopes.items():
            first = rule.beta1 * self.moments[0][name] + (1 - rule.beta1) * slope
            second = rule.beta2 * self.moments[1][name] + (1 - rule.beta2) * slope.square()
            root = (second / (1 - powers[1])).sqrt() + rule.epsilon
            weight = self.parameters[name]
            decays = isinstance(rule, AdamW) and name.endswith("/weight")
            kept = weight * (1 - rate * rule.weight_decay) if decays else weight
            changes += [
                (self.moments[0][name], first),
                (self.moments[1][name], second),
                (weight, kept - rate * (first / (1 - powers[0])) / root),
            ]
        return changes

    def sgd(self, rule: SGD, slopes: Mapping[str, Any], rate: float) -> Changes:
        """Say what momentum makes of the velocities and the weights."""
        changes: Changes = []
        for name, slope in slopes.items():
            weight = self.parameters[name]
            if rule.weight_decay and name.endswith("/weight"):
                slope = slope + rule.weight_decay * weight
            velocity = rule.momentum * self.moments[0][name] + slope
            changes += [(self.moments[0][name], velocity), (weight, weight - rate * velocity)]
        return changes


class Optimiser(NamedTuple):
    """How one optimiser changes the weights, and what it keeps: moments, and powers of betas."""

    update: Callable[[Trainer, Any, Mapping[str, Any], float], Changes]
    moments: int
    powers: int


OPTIMISERS: Dict[type, Optimiser] = {
    SGD: Optimiser(Trainer.sgd, moments=1, powers=0),
    Adam: Optimiser(Trainer.adam, moments=2, powers=2),
    AdamW: Optimiser(Trainer.adam, moments=2, powers=2),
}


def _token_cross_entropy(output: Any, target: Any) -> Any:
    """Take the mean over positions that are asked; of others no class is marked, so they add 0."""
    total = output.sparse_categorical_crossentropy(target, reduction="sum")
    return total / (target != MASKED).sum()


def _token_and_pair_cross_entropy(output: Any, target: Any) -> Any:
    tokens, pair = output
    of_pair = pair.sparse_categorical_crossentropy(target[:, -1])
    return _token_cross_entropy(tokens, target[:, :-1]) + of_pair


LOSSES: Dict[str, Callable[[Any, Any], Any]] = {
    "cross-entropy": lambda output, target: output.sparse_categorical_crossentropy(target),
    "mean-squared-error": lambda output, target: (output - target).square().mean(),
    "token-cross-entropy": _token_cross_entropy,
    "token-and-pair-cross-entropy": _token_and_pair_cross_entropy,
}


def array_of(tensor: Given) -> Any:
    """Read a tensor of a folder."""
    return numpy.frombuffer(tensor.items(), tensor.dtype).reshape(tensor.shape)


def made(name: str, tensor: Any, dtype: Any = numpy.float64) -> Made:
    """Give a tensor as a folder takes it."""
    array = tensor.numpy().astype(dtype, order="C")
    return name, array.shape, array


def put(tensor: Any, array: Any) -> None:
    """Write numbers into a tensor's own buffer."""
    tensor.assign(Tensor(array, dtype=tensor.dtype).realize()).realize()


def _initial(held: Parameter, draw: Any) -> Any:
    """Draw with numpy: tinygrad would compile a kernel for every shape before the first step."""
    if not held.deviation:
        return numpy.full(held.shape, held.mean)
    return draw.normal(held.mean, held.deviation, held.shape)


def draw_texts(feed: Feed) -> Dict[str, Any]:
    """Make a batch of tokens and of what is asked of them."""
    drawn = (numpy.array(one).reshape(feed.batch_per_rank, -1) for one in texts(feed))
    tokens, target = (Tensor(one, dtype=dtypes.int32).realize() for one in drawn)
    return {"x": tokens, "target": target}


def draw_batch(trainer: Trainer, shape: Tuple[int, ...], targets: Any, seed: int) -> Dict[str, Any]:
    """Make the synthetic batch on the device."""
    draw = numpy.random.default_rng(seed)
    x = trainer.tensor(draw.normal(size=shape))
    if hasattr(targets, "count"):
        classes = draw.integers(0, targets.count, shape[0])
        return {"x": x, "target": Tensor(classes, dtype=dtypes.int32).realize()}
    return {"x": x, "target": trainer.tensor(draw.normal(size=(shape[0], targets.length)))}
