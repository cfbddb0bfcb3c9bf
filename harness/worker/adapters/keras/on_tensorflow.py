"""Train a Keras model on TensorFlow: a traced step with a GradientTape, as Keras' guide has it."""

from __future__ import annotations

from typing import Any, Dict, Mapping

import keras
import tensorflow as tf

from harness.worker.adapters.keras.lowering import KerasLowering
from harness.worker.adapters.keras.training import Trainer
from harness.worker.adapters.tensorflow.strategies.strategies import Strategy
from harness.worker.attribution.marks import LOSS, UPDATE
from harness.worker.network.workload import Training


class TensorFlowTrainer(Trainer):
    """A trainer whose variables are TensorFlow's, for the activity of that adapter."""

    def __init__(self, workload: Training, lowering: KerasLowering, batch_per_step: int) -> None:
        super().__init__(workload, lowering, batch_per_step)
        self.strategy = Strategy()
        self.values = lowering.values()
        self.learned = {name: self.values[name] for name in self.names}

    def step(self, x: Any, target: Any, is_dropping: bool) -> Any:
        """Train one step and give the loss; belongs inside a traced function."""
        _, loss, gradients = self._gradients(self.model, x, target)
        with self.lowering.mark(UPDATE):
            weights = list(self.learned.values())
            self.optimiser.apply(self.forces(list(gradients.values()), weights), self.variables)
        return loss

    def moments(self) -> Dict[str, Dict[str, Any]]:
        """Give what the optimiser keeps of each parameter, as TensorFlow's variables."""
        return {
            moment: {name: one.value for name, one in variables.items()}
            for moment, variables in self.kept().items()
        }

    def examine(self, x: Any, target: Any) -> Any:
        """Run forward and backward without an update; give output, loss, gradients, activations."""
        found, loss, gradients = self._gradients(self.lowering.watched(), x, target)
        if isinstance(self.optimiser, keras.optimizers.LossScaleOptimizer):
            scale = self.optimiser.dynamic_scale
            gradients = {name: gradient / scale for name, gradient in gradients.items()}
        return found["output"], loss, gradients, found["layers"]

    def _gradients(self, model: Any, x: Any, target: Any) -> Any:
        with tf.GradientTape() as tape:
            found = model(x, training=True)
            output = found["output"] if isinstance(found, dict) else found
            with self.lowering.mark(LOSS):
                loss = self.loss_of(target, output)
            goal = loss
            if isinstance(self.optimiser, keras.optimizers.LossScaleOptimizer):
                goal = self.optimiser.scale_loss(loss)
        # Of a table only the rows that were read come back, each as often as it was read.
        given = tape.gradient(goal, list(self.learned.values()))
        gradients = [one if one is None else tf.convert_to_tensor(one) for one in given]
        return found, loss, dict(zip(self.learned, gradients))


class KerasSubject:
    """What an examination on TensorFlow needs of a Keras model."""

    def __init__(self, workload: Training, dtype: Any, stored: Any) -> None:
        self._workload = workload
        self._lowering = KerasLowering(workload.network, is_dropping=False)
        self.arrangement = self._lowering.arrangement
        self.dtype = dtype
        self.stored = stored

    def trainer(self, initial: Mapping[str, Any], batch_per_step: int) -> TensorFlowTrainer:
        """Start an optimiser on given values."""
        trainer = TensorFlowTrainer(self._workload, self._lowering, batch_per_step)
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
