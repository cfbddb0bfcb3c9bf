"""Train a Keras model by a custom step, the fastest way that Keras documents.

``fit`` and ``train_on_batch`` add metrics, callbacks and a read of the loss after every step; the
custom loop of Keras' guide "Writing a training loop from scratch in TensorFlow" does not. Weight
decay of SGD is added to the gradients: the optimisers' own ``weight_decay`` is decoupled, which is
AdamW's rule, and a regulariser would read every weight once more.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

import keras
import numpy
import tensorflow as tf
from keras import ops

from harness.worker.adapters.keras.lowering import KerasLowering
from harness.worker.adapters.tensorflow.strategies.strategies import Strategy
from harness.worker.attribution.marks import LOSS, UPDATE
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


class KerasTrainer:
    """A model, its loss and its optimiser."""

    def __init__(self, workload: Training, lowering: KerasLowering, batch_per_step: int) -> None:
        self.lowering = lowering
        self.strategy = Strategy()
        self._rule = workload.optimiser
        self._decay = self._rule.weight_decay if isinstance(self._rule, SGD) else 0.0
        self._decayed = frozenset(lowering.decayed())
        self.values = lowering.values()
        names = lowering.arrangement.parameters
        self.learned = {name: self.values[name] for name in names}
        self._variables = [lowering.variable(name) for name in names]
        dtype = keras.config.dtype_policy()
        self._loss = lowering_of(LOSSES, workload.loss, "keras")(dtype.variable_dtype)
        self._optimiser = optimiser(workload.optimiser, batch_per_step)
        if isinstance(self._rule, AdamW):
            still = [lowering.variable(name) for name in names if name not in self._decayed]
            self._optimiser.exclude_from_weight_decay(var_list=still)
        if dtype.compute_dtype == "float16":
            self._optimiser = keras.optimizers.LossScaleOptimizer(self._optimiser)
        self._optimiser.build(self._variables)

    def step(self, x: Any, target: Any, is_dropping: bool) -> Any:
        """Train one step and give the loss; belongs inside a traced function."""
        _, loss, gradients = self._gradients(self.lowering.model, x, target)
        with self.lowering.mark(UPDATE):
            self._optimiser.apply(
                [
                    gradient + self._decay * self.learned[name]
                    if self._decay and name in self._decayed
                    else gradient
                    for name, gradient in gradients.items()
                ],
                self._variables,
            )
        return loss

    @property
    def moment_factor(self) -> float:
        """Say what Keras multiplies moments by: its velocity is what a weight moves by."""
        if isinstance(self._rule, SGD):
            return -float(self._optimiser.learning_rate)
        return 1.0

    def moments(self) -> Dict[str, Dict[str, Any]]:
        """Give what the optimiser keeps of each parameter, by canonical names."""
        kept = {
            moment: getattr(self._optimiser, KEPT[moment]) for moment in MOMENTS[type(self._rule)]
        }
        return {
            moment: {name: one.value for name, one in zip(self.learned, variables)}
            for moment, variables in kept.items()
        }

    def set_step(self, updates: float) -> None:
        """Tell the optimiser how many updates it has made."""
        self._optimiser.iterations.assign(int(updates))

    def reset(self) -> None:
        """Forget the optimiser's state."""
        for variable in self._optimiser.variables:
            if variable.name != "learning_rate":
                variable.assign(ops.zeros_like(variable))

    def examine(self, x: Any, target: Any) -> Any:
        """Run forward and backward without an update; give output, loss, gradients, activations."""
        found, loss, gradients = self._gradients(self.lowering.watched(), x, target)
        if isinstance(self._optimiser, keras.optimizers.LossScaleOptimizer):
            scale = self._optimiser.dynamic_scale
            gradients = {name: gradient / scale for name, gradient in gradients.items()}
        return found["output"], loss, gradients, found["layers"]

    def _gradients(self, model: Any, x: Any, target: Any) -> Any:
        with tf.GradientTape() as tape:
            found = model(x, training=True)
            output = found["output"] if isinstance(found, dict) else found
            with self.lowering.mark(LOSS):
                loss = self._loss(target, output)
            goal = loss
            if isinstance(self._optimiser, keras.optimizers.LossScaleOptimizer):
                goal = self._optimiser.scale_loss(loss)
        # Of a table only the rows that were read come back, each as often as it was read.
        given = tape.gradient(goal, list(self.learned.values()))
        gradients = [one if one is None else tf.convert_to_tensor(one) for one in given]
        return found, loss, dict(zip(self.learned, gradients))


class KerasSubject:
    """What an examination needs of a Keras model."""

    def __init__(self, workload: Training, dtype: Any, stored: Any) -> None:
        self._workload = workload
        self._lowering = KerasLowering(workload.network, is_dropping=False)
        self.arrangement = self._lowering.arrangement
        self.dtype = dtype
        self.stored = stored

    def trainer(self, initial: Mapping[str, Any], batch_per_step: int) -> KerasTrainer:
        """Start an optimiser on given values."""
        trainer = KerasTrainer(self._workload, self._lowering, batch_per_step)
        for name, value in initial.items():
            trainer.values[name].assign(value)
        return trainer

    def alone(self, path: str, state: Mapping[str, Any]) -> Any:
        """Give one layer as a function of its input, and its parameters by name.

        The function gives the output and the running statistics that it moved.
        """
        lowering = self._lowering
        learned: Dict[str, Any] = {}
        moved = [name for name in state if name in self.arrangement.statistics]

        def run_layer(x: Any) -> Any:
            y = lowering.call(path, x)
            return y, {name: lowering.variable(name).value.read_value() for name in moved}

        for name, value in state.items():
            lowering.variable(name).assign(value)
            if name in self.arrangement.parameters:
                learned[name] = lowering.variable(name).value
        return run_layer, learned


def optimiser(rule: Any, batch_per_step: int) -> Any:
    """Give the Keras optimiser of a rule.

    numpy's numbers, because Keras rounds a plain one to float32 on its way into a float64 update.
    """
    return lowering_of(OPTIMISERS, type(rule), "keras")(rule, batch_per_step)


def _of_classes(dtype: str, **more: Any) -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, dtype=dtype, **more)


def _of_two_heads(dtype: str) -> Any:
    """Add up the losses of two heads; a target's last number is the sample's."""
    of_tokens, of_pair = _of_classes(dtype, ignore_class=MASKED), _of_classes(dtype)

    def loss(target: Any, output: Any) -> Any:
        tokens, pair = output
        return of_tokens(target[:, :-1], tokens) + of_pair(target[:, -1], pair)

    return loss


def _adam(rule: Adam, _batch_per_step: int) -> Any:
    betas = numpy.float64(rule.beta1), numpy.float64(rule.beta2)
    return TextbookAdam(rule.rate, *betas, rule.epsilon)


def _adamw(rule: AdamW, _batch_per_step: int) -> Any:
    decay, *betas = (numpy.float64(one) for one in (rule.weight_decay, rule.beta1, rule.beta2))
    more = {"weight_decay": decay, "global_clipnorm": rule.clip}
    return TextbookAdam(rule.rate, *betas, rule.epsilon, **more)


def _sgd(rule: SGD, batch_per_step: int) -> Any:
    rate = rule.rate * batch_per_step / rule.rate_batch if rule.rate_batch else rule.rate
    return keras.optimizers.SGD(rate, momentum=numpy.float64(rule.momentum))


OPTIMISERS: Dict[type, Callable[[Any, int], Any]] = {
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
