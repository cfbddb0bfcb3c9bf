"""The training step: forward, loss, gradients, update, and every change at once.

All that a step changes is assigned in place and realised together, so that one capture of TinyJit
holds the whole step. The updates are written out: ``nn.optim`` keeps moments and rates in fp32, and
a gate in float64 could not see through that.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy
from tinygrad import Tensor, dtypes

from harness.worker.adapters.tinygrad.lowering import Lowered, Pass, Tensors
from harness.worker.network.layers import BatchNorm, Conv, Dense, Dropout
from harness.worker.network.shapes import parameter_shapes, product
from harness.worker.network.workload import SGD, Training, learning_rate

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
            for name, shape in parameter_shapes(site):
                self.parameters[name] = self.tensor(_initial(site.layer, name, shape, draw))
            if isinstance(site.layer, BatchNorm):
                self.statistics[site.path + "/mean"] = self.tensor(numpy.zeros(site.input[0]))
                self.statistics[site.path + "/variance"] = self.tensor(numpy.ones(site.input[0]))
        is_sgd = isinstance(workload.optimiser, SGD)
        self.moments: List[Tensors] = [
            {name: self.tensor(numpy.zeros(value.shape)) for name, value in self.parameters.items()}
            for _ in range(1 if is_sgd else 2)
        ]
        self.powers = [] if is_sgd else [self.tensor(numpy.ones(1)) for _ in range(2)]

    def tensor(self, array: Any) -> Any:
        """Put an array on the device, in this trainer's type."""
        return Tensor(array.astype(self.kind)).realize()

    def loss(self, x: Any, target: Any, kept: Optional[Tensors] = None) -> Tuple[Any, Any, Pass]:
        """Give loss, output, and what the layers left behind."""
        one = Pass(self.parameters, self.statistics, self.drops and kept is None, {}, kept)
        output = self.net.run(x, one)
        if self.workload.loss == "mean-squared-error":
            return (output - target).square().mean(), output, one
        return output.sparse_categorical_crossentropy(target), output, one

    def step(self, x: Any, target: Any, global_batch: int) -> Any:
        """Run one training step; give its loss."""
        loss, _, one = self.loss(x, target)
        slopes = loss.gradient(*self.parameters.values())
        named = dict(zip(self.parameters, slopes))
        changes = self._update(named, learning_rate(self.workload.optimiser, global_batch))
        changes += [(self.statistics[name], value) for name, value in one.updated.items()]
        return loss.realize(*[old.assign(new) for old, new in changes])

    def _update(self, slopes: Mapping[str, Any], rate: float) -> Changes:
        rule = self.workload.optimiser
        if isinstance(rule, SGD):
            return self._sgd(rule, slopes, rate)
        changes: Changes = []
        betas = (rule.beta1, rule.beta2)
        powers = [power * beta for power, beta in zip(self.powers, betas)]
        changes += zip(self.powers, powers)
        for name, slope in slopes.items():
            first = rule.beta1 * self.moments[0][name] + (1 - rule.beta1) * slope
            second = rule.beta2 * self.moments[1][name] + (1 - rule.beta2) * slope.square()
            root = (second / (1 - powers[1])).sqrt() + rule.epsilon
            weight = self.parameters[name]
            changes += [
                (self.moments[0][name], first),
                (self.moments[1][name], second),
                (weight, weight - rate * (first / (1 - powers[0])) / root),
            ]
        return changes

    def _sgd(self, rule: SGD, slopes: Mapping[str, Any], rate: float) -> Changes:
        changes: Changes = []
        for name, slope in slopes.items():
            weight = self.parameters[name]
            if rule.weight_decay and name.endswith("/weight"):
                slope = slope + rule.weight_decay * weight
            velocity = rule.momentum * self.moments[0][name] + slope
            changes += [(self.moments[0][name], velocity), (weight, weight - rate * velocity)]
        return changes


def _initial(layer: Any, name: str, shape: Tuple[int, ...], draw: Any) -> Any:
    """Draw with numpy: tinygrad would compile a kernel for every shape before the first step."""
    kind = name.rsplit("/", 1)[1]
    if kind == "gamma":
        return numpy.ones(shape)
    if kind == "weight" and isinstance(layer, Conv):
        fan_out = shape[0] * product(shape[2:])
        return draw.normal(0, (2 / fan_out) ** 0.5, shape)
    if kind == "weight" and isinstance(layer, Dense):
        return draw.normal(0, 0.01, shape)
    return numpy.zeros(shape)


def draw_batch(trainer: Trainer, shape: Tuple[int, ...], targets: Any, seed: int) -> Dict[str, Any]:
    """Make the synthetic batch on the device."""
    draw = numpy.random.default_rng(seed)
    x = trainer.tensor(draw.normal(size=shape))
    if hasattr(targets, "count"):
        classes = draw.integers(0, targets.count, shape[0])
        return {"x": x, "target": Tensor(classes, dtype=dtypes.int32).realize()}
    return {"x": x, "target": trainer.tensor(draw.normal(size=(shape[0], targets.length)))}
