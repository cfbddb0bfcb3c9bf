"""A SINGA model of a network: its step, its starting weights, its optimiser.

SINGA's SGD is torch's (v = m v + g; w = w - rate v) and its Adam too, epsilon outside the root. Its
weight decay would touch every parameter; ours touches weights only, so parameters go to one of two
optimisers by their name.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

import numpy
from singa import autograd, model, opt, tensor

from harness.worker.adapters.singa.lowering import Lowered, input_shape, registered
from harness.worker.feed import Classes, Feed
from harness.worker.network.shapes import parameters
from harness.worker.network.words import holes, lowering_of
from harness.worker.network.workload import SGD, Adam, AdamW, Training, learning_rate


class ScopedSGD(opt.SGD):
    """SGD whose decay touches weights of convolutions and dense layers only."""

    def __init__(self, rate: float, momentum: float, decay: float) -> None:
        super().__init__(lr=rate, momentum=momentum, weight_decay=decay)
        self._plain = opt.SGD(lr=rate, momentum=momentum)

    def apply(self, name: str, value: Any, gradient: Any) -> None:
        """Update one parameter."""
        if str(name).endswith(".W"):
            super().apply(name, value, gradient)
        else:
            self._plain.apply(name, value, gradient)


class Trained(model.Model):
    """The network as SINGA trains it."""

    def __init__(self, net: Lowered, workload: Training, rate: float) -> None:
        super().__init__()
        self.net = net
        self._loss_of = lowering_of(LOSSES, workload.loss, "singa")
        for name, made in net.layers.items():
            setattr(self, name, made)
        rule = workload.optimiser
        self.optimizer = lowering_of(OPTIMISERS, type(rule), "singa")(rule, rate)

    def forward(self, x: Any) -> Any:
        """Run a batch through the network."""
        return self.net.run(x)

    def train_one_batch(self, x: Any, target: Any) -> Any:
        """Train once; give output and loss."""
        output = self.forward(x)
        loss = self._loss_of(output, target)
        self.optimizer(loss)
        return output, loss


OPTIMISERS: Dict[type, Callable[[Any, float], Any]] = {
    SGD: lambda rule, rate: ScopedSGD(rate, rule.momentum, rule.weight_decay),
    Adam: lambda rule, rate: opt.Adam(
        lr=rate, beta_1=rule.beta1, beta_2=rule.beta2, epsilon=rule.epsilon
    ),
    **holes((AdamW,), "SINGA's decay enters the moments"),
}
LOSSES: Dict[str, Callable[[Any, Any], Any]] = {
    "cross-entropy": autograd.softmax_cross_entropy,
    "mean-squared-error": autograd.mse_loss,
    **holes(
        ("token-cross-entropy", "token-and-pair-cross-entropy"), "SINGA's autograd has no attention"
    ),
}


class Batch:
    """One synthetic batch on the device."""

    def __init__(self, net: Lowered, feed: Feed, device: Any) -> None:
        draw = numpy.random.default_rng(feed.seed + 1)
        self.x = tensor.Tensor(input_shape(net, feed.batch_per_rank), device)
        self.x.copy_from_numpy(draw.standard_normal(self.x.shape, dtype=numpy.float32))
        if isinstance(feed.targets, Classes):
            self.target = tensor.Tensor((feed.batch_per_rank,), device, tensor.int32)
            numbers = draw.integers(0, feed.targets.count, feed.batch_per_rank)
            self.target.copy_from_numpy(numbers.astype(numpy.int32))
        else:
            assert feed.targets is not None
            self.target = tensor.Tensor((feed.batch_per_rank, feed.targets.length), device)
            vectors = draw.standard_normal(self.target.shape, dtype=numpy.float32)
            self.target.copy_from_numpy(vectors)


def prepare(net: Lowered, workload: Training, feed: Feed, batch: Batch, compiled: bool) -> Trained:
    """Make a model whose parameters exist, and draw them."""
    rate = learning_rate(workload.optimiser, feed.batch_per_step)
    made = Trained(net, workload, rate)
    made.compile([batch.x], is_train=True, use_graph=compiled, sequential=False)
    _draw(made, net, feed.seed)
    return made


def _draw(made: Trained, net: Lowered, seed: int) -> None:
    """Start as every framework does; SINGA's own start is another."""
    draw = numpy.random.default_rng(seed)
    own: Dict[str, Any] = made.get_params()
    for site in net.sites.values():
        for held in (held for _, held in parameters(site) if held.kind == "weight"):
            weight = own[registered(site.path) + ".W"]
            values = draw.standard_normal(weight.shape, dtype=numpy.float32) * held.deviation
            weight.copy_from_numpy(values.astype(numpy.float32))
    for name, value in own.items():
        if name.endswith(".b"):
            value.set_value(0.0)
