"""What trains a Keras model whatever computes it: its loss and its optimiser.

The step is a custom one, the fastest way that Keras documents: ``fit`` and ``train_on_batch`` add
metrics, callbacks and a read of the loss after every step. Keras' guides write it once for each
backend, and so do ``on_tensorflow.py``, ``on_jax.py`` and ``on_torch.py``. Weight decay of SGD is
added to the gradients: the optimisers' own ``weight_decay`` is decoupled, which is AdamW's rule,
and a regulariser would read every weight once more.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Type

import keras
import numpy
from keras import ops

from harness.worker.adapters.keras.lowering import KerasLowering
from harness.worker.network.words import lowering_of
from harness.worker.network.workload import MASKED, MOMENTS, SGD, Adam, AdamW, Training

KEPT = {"velocity": "momentums", "first": "_momentums", "second": "_velocities"}
"""What Keras' optimisers call what they keep."""


class TextbookAdam(keras.optimizers.Adam):
    """Adam whose epsilon stands beside the bias-corrected moment, as in the paper's algorithm.

    Keras takes the paper's shortcut, which is the same but for an epsilon that shrinks with it. Its
    AdamW is Adam with a decay, and no other class.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one variable."""
        rate = ops.cast(learning_rate, variable.dtype)
        gradient = ops.cast(gradient, variable.dtype)
        step = ops.cast(self.iterations + 1, variable.dtype)
        root = ops.sqrt(1 - ops.power(ops.cast(self.beta_2, variable.dtype), step))
        rate = rate * root / (1 - ops.power(ops.cast(self.beta_1, variable.dtype), step))
        index = self._get_variable_index(variable)
        first, second = self._momentums[index], self._velocities[index]
        self.assign_add(first, (gradient - first) * (1 - self.beta_1))
        self.assign_add(second, (ops.square(gradient) - second) * (1 - self.beta_2))
        self.assign_sub(variable, first * rate / (ops.sqrt(second) + self.epsilon * root))


class Trainer:
    """A model, its loss and its optimiser, whatever backend computes them."""

    def __init__(
        self,
        workload: Training,
        lowering: KerasLowering,
        batch_per_step: int,
        adam: Type[TextbookAdam] = TextbookAdam,
    ) -> None:
        self.lowering = lowering
        self.model = lowering.model
        self._rule = workload.optimiser
        self._decay = self._rule.weight_decay if isinstance(self._rule, SGD) else 0.0
        self._decayed = frozenset(lowering.decayed())
        self.names = list(lowering.arrangement.parameters)
        self.variables = [lowering.variable(name) for name in self.names]
        dtype = keras.config.dtype_policy()
        self.loss_of = lowering_of(LOSSES, workload.loss, "keras")(dtype.variable_dtype)
        write = lowering_of(OPTIMISERS, type(self._rule), "keras")
        self.optimiser = write(self._rule, batch_per_step, adam)
        if isinstance(self._rule, AdamW):
            still = [lowering.variable(name) for name in self.names if name not in self._decayed]
            self.optimiser.exclude_from_weight_decay(var_list=still)
        if dtype.compute_dtype == "float16":
            self.optimiser = keras.optimizers.LossScaleOptimizer(self.optimiser)
        self.optimiser.build(self.variables)

    def forces(self, gradients: Sequence[Any], weights: Sequence[Any]) -> List[Any]:
        """Give what the optimiser moves weights by: gradients, and what SGD's decay adds."""
        return [
            gradient + self._decay * weight if self._decay and name in self._decayed else gradient
            for name, gradient, weight in zip(self.names, gradients, weights)
        ]

    @property
    def moment_factor(self) -> float:
        """Say what Keras multiplies moments by: its velocity is what a weight moves by."""
        if isinstance(self._rule, SGD):
            return -float(self.optimiser.learning_rate)
        return 1.0

    def kept(self) -> Dict[str, Dict[str, Any]]:
        """Give the variables that the optimiser keeps of each parameter, by canonical names."""
        lists = {moment: getattr(self.optimiser, KEPT[moment]) for moment in self._moments()}
        return {moment: dict(zip(self.names, variables)) for moment, variables in lists.items()}

    def set_step(self, updates: float) -> None:
        """Tell the optimiser how many updates it has made."""
        self.optimiser.iterations.assign(int(updates))

    def reset(self) -> None:
        """Forget the optimiser's state."""
        for variable in self.optimiser.variables:
            if variable.name != "learning_rate":
                variable.assign(ops.zeros_like(variable.value))

    def _moments(self) -> Sequence[str]:
        return MOMENTS[type(self._rule)]


def _of_classes(dtype: str, **more: Any) -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, dtype=dtype, **more)


def _of_two_heads(dtype: str) -> Any:
    """Add up the losses of two heads; a target's last number is the sample's."""
    of_tokens, of_pair = _of_classes(dtype, ignore_class=MASKED), _of_classes(dtype)

    def loss(target: Any, output: Any) -> Any:
        tokens, pair = output
        return of_tokens(target[:, :-1], tokens) + of_pair(target[:, -1], pair)

    return loss


def _adam(rule: Adam, _batch_per_step: int, adam: Type[TextbookAdam]) -> Any:
    betas = numpy.float64(rule.beta1), numpy.float64(rule.beta2)
    return adam(rule.rate, *betas, rule.epsilon)


def _adamw(rule: AdamW, _batch_per_step: int, adam: Type[TextbookAdam]) -> Any:
    decay, *betas = (numpy.float64(one) for one in (rule.weight_decay, rule.beta1, rule.beta2))
    more = {"weight_decay": decay, "global_clipnorm": rule.clip}
    return adam(rule.rate, *betas, rule.epsilon, **more)


def _sgd(rule: SGD, batch_per_step: int, _adam: Type[TextbookAdam]) -> Any:
    rate = rule.rate * batch_per_step / rule.rate_batch if rule.rate_batch else rule.rate
    return keras.optimizers.SGD(rate, momentum=numpy.float64(rule.momentum))


# numpy's numbers, because Keras rounds a plain one to float32 on its way into a float64 update.
OPTIMISERS: Dict[type, Callable[[Any, int, Any], Any]] = {
    SGD: _sgd,
    Adam: _adam,
    AdamW: _adamw,
}
LOSSES: Dict[str, Callable[[str], Any]] = {
    "cross-entropy": _of_classes,
    "mean-squared-error": lambda dtype: keras.losses.MeanSquaredError(dtype=dtype),
    "token-cross-entropy": lambda dtype: _of_classes(dtype, ignore_class=MASKED),
    "token-and-pair-cross-entropy": _of_two_heads,
}
