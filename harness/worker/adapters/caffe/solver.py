"""Write Caffe's solver: how the weights move.

- SGD: Caffe keeps rate x gradient in its velocity, torch the gradient. With a rate that stays they
  are the same steps, and here it stays. Decay is added to the gradient first, scaled by each
  parameter's ``decay_mult``, which the net sets to 0 but for weights.
- Adam: Caffe adds epsilon before it corrects the second moment for its start, torch after. A named
  difference: at step t Caffe's epsilon counts 1 / sqrt(1 - beta2^t) times as much.
- Nothing is saved: a snapshot in the middle would be timed.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from harness.worker.adapters.caffe.prototxt import Message, Word
from harness.worker.network.words import holes, lowering_of
from harness.worker.network.workload import SGD, Adam, AdamW, Training, learning_rate

ENDLESS = 2**31 - 1


def solver(
    workload: Training, *, net: str, batch_per_step: int, display: int, device: str, seed: int
) -> Message:
    """Write a solver that goes on until it is stopped."""
    rule = workload.optimiser
    message: Message = [("net", net), ("base_lr", learning_rate(rule, batch_per_step))]
    message += [("lr_policy", "fixed"), ("max_iter", ENDLESS), ("display", display)]
    message += lowering_of(OPTIMISERS, type(rule), "caffe")(rule)
    message += [("snapshot", 0), ("snapshot_after_train", False)]
    message += [("solver_mode", Word(device.upper())), ("random_seed", seed)]
    return message


def _sgd(rule: SGD) -> Message:
    return [("type", "SGD"), ("momentum", rule.momentum), ("weight_decay", rule.weight_decay)]


def _adam(rule: Adam) -> Message:
    moments = [("momentum", rule.beta1), ("momentum2", rule.beta2)]
    return [("type", "Adam"), *moments, ("delta", rule.epsilon)]


OPTIMISERS: Dict[type, Callable[[Any], Message]] = {
    SGD: _sgd,
    Adam: _adam,
    **holes((AdamW,), "Caffe's decay enters the moments"),
}
