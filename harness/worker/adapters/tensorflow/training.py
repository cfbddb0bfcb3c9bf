"""One training step: forward, loss, backward, update, and the variables it moves."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow.lowering.layer_style import Pass
from harness.worker.adapters.tensorflow.lowering.layers import run
from harness.worker.adapters.tensorflow.lowering.network import Lowering, loss
from harness.worker.adapters.tensorflow.optimiser import Update
from harness.worker.adapters.tensorflow.strategies.strategies import Strategy
from harness.worker.attribution.marks import LOSS, UPDATE
from harness.worker.network.layers import Dropout
from harness.worker.network.workload import Training

GROWTH_STEPS = 2000


class Trainer:
    """A network with its variables and optimiser, kept in float32 (float64 for the gate)."""

    moment_factor = 1.0
    """What the optimiser multiplies the moments by that it keeps."""

    def __init__(
        self,
        workload: Training,
        lowering: Lowering,
        initial: Mapping[str, Any],
        batch_per_step: int,
        strategy: Optional[Strategy] = None,
        accumulate: int = 1,
    ) -> None:
        self.workload = workload
        self._accumulate = accumulate
        self.strategy = strategy or Strategy()
        self.lowering = lowering
        names = lowering.arrangement.parameters
        with self.strategy.scope():
            self.values = self._variables(initial)
            self.learned = {name: self.values[name] for name in names}
            self._optimiser(batch_per_step)
            is_scaled = lowering.style.dtype == tf.float16
            self.loss_scale = LossScale() if is_scaled else None

    def _variables(self, initial: Mapping[str, Any]) -> Dict[str, Any]:
        names = self.lowering.arrangement.parameters
        return {
            name: tf.Variable(value, trainable=name in names) for name, value in initial.items()
        }

    def _optimiser(self, batch_per_step: int) -> None:
        rule, decayed = self.workload.optimiser, self.lowering.decayed()
        self._update = Update(rule, self.learned, decayed, batch_per_step, self.lowering.mark)

    def gradients(self, x: Any, target: Any, is_dropping: bool) -> Any:
        """Run forward and backward; give the pass, output, loss and gradients by name.

        Of micro-batches each begins when the sum of gradients before it is there: TensorFlow runs
        side by side what does not wait, and would keep all that their backward passes need.
        """
        count = self._accumulate
        if count == 1:
            return self._passes(x, target, target, is_dropping)
        found: List[Any] = []
        sums: Dict[str, Any] = {}
        for own, asked in zip(tf.split(x, count), tf.split(target, count)):
            with tf.control_dependencies(list(sums.values())):
                *rest, gradients = self._passes(tf.identity(own), asked, target, is_dropping)
                sums = {name: sums[name] + one if sums else one for name, one in gradients.items()}
            found.append(rest)
        passes, outputs, parts = zip(*found)
        now = passes[-1]
        now.activations = _joined([one.activations for one in passes])
        return now, _joined(outputs), tf.add_n(parts), sums

    def _passes(self, x: Any, target: Any, whole: Any, is_dropping: bool) -> Any:
        """Run a batch, or a micro-batch of the one that has the ``whole`` target."""
        now = Pass(self.lowering.style, dict(self.values), is_dropping)
        scale = self.loss_scale
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(list(self.learned.values()))
            output = self.lowering.forward(now, x)
            with self.lowering.mark(LOSS):
                mean = loss(self.workload.loss, output, target, whole)
            goal = mean if scale is None else mean * scale.value
        # Of a table only the rows that were read come back, each as often as it was read.
        found = map(tf.convert_to_tensor, tape.gradient(goal, list(self.learned.values())))
        named = dict(zip(self.learned, found))
        return now, output, mean, named if scale is None else scale.undo(named)

    def step(self, x: Any, target: Any, is_dropping: bool) -> Any:
        """Train one step and give the loss; belongs inside a traced function."""
        x, target = self.strategy.own((x, target))
        now, _, mean, own = self.gradients(x, target, is_dropping)
        gradients = self.strategy.averaged(own)
        for name, value in now.moved.items():
            self.values[name].assign(value)
        with self.lowering.mark(UPDATE):
            if self.loss_scale is None:
                self._update.apply(gradients)
            else:
                self.loss_scale.guard(gradients, self._update)
        return mean

    def state(self) -> Dict[str, Any]:
        """Give every variable that training changes, by name."""
        scale = {} if self.loss_scale is None else self.loss_scale.state()
        return {**self.values, **self._update.state(), **scale}

    def moments(self) -> Dict[str, Dict[str, Any]]:
        """Give what the optimiser keeps of each parameter, by canonical names."""
        return self._update.moments()

    def set_step(self, updates: float) -> None:
        """Tell the optimiser how many updates it has made."""
        for power, value in self._update.powers(updates):
            power.assign(value)

    def reset(self) -> None:
        """Forget the optimiser's state."""
        self._update.reset()

    def examine(self, x: Any, target: Any) -> Any:
        """Run forward and backward without an update; give output, loss, gradients, activations."""
        now, output, mean, gradients = self.gradients(x, target, is_dropping=False)
        for name, value in now.moved.items():
            self.values[name].assign(value)
        return output, mean, gradients, now.activations


def _joined(parts: Sequence[Any]) -> Any:
    """Put what micro-batches gave behind each other again."""
    return tf.nest.map_structure(lambda *each: tf.concat(each, 0), *parts)


class LoweredSubject:
    """What an examination needs of this lowering."""

    def __init__(self, workload: Training, lowering: Lowering, accumulate: int = 1) -> None:
        self._workload = workload
        self._accumulate = accumulate
        self.lowering = lowering
        self.arrangement = lowering.arrangement
        self.dtype = lowering.style.dtype
        self.stored = lowering.stored

    def trainer(self, initial: Mapping[str, Any], batch_per_step: int) -> Trainer:
        """Start an optimiser and variables."""
        how = self._workload, self.lowering, initial, batch_per_step
        return Trainer(*how, accumulate=self._accumulate)

    def alone(self, path: str, state: Mapping[str, Any]) -> Any:
        """Give one layer as a function of its input, and its parameters by name.

        The function gives the output and the running statistics that it moved.
        """
        spot = self.arrangement.spots[path]
        values = dict(state)

        def run_layer(x: Any) -> Any:
            now = Pass(self.lowering.style, values, is_dropping=isinstance(spot.layer, Dropout))
            return run(spot, now, x), now.moved

        return run_layer, {n: v for n, v in values.items() if n in self.arrangement.parameters}


class LossScale:
    """Dynamic loss scaling for float16 as torch's GradScaler does it."""

    def __init__(self) -> None:
        self.value = tf.Variable(2.0**16, trainable=False)
        self._good = tf.Variable(0, trainable=False)

    def state(self) -> Dict[str, Any]:
        """Give its variables by name."""
        return {"scale": self.value, "good": self._good}

    def undo(self, gradients: Mapping[str, Any]) -> Dict[str, Any]:
        """Divide the scale out again."""
        inverse = 1.0 / self.value
        return {name: gradient * inverse for name, gradient in gradients.items()}

    def guard(self, gradients: Mapping[str, Any], update: Update) -> None:
        """Update where every gradient is finite, else halve the scale."""
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g in gradients.values()])

        def go() -> Any:
            update.apply(gradients)
            grows = self._good + 1 >= GROWTH_STEPS
            self.value.assign(tf.where(grows, 2.0 * self.value, self.value))
            self._good.assign(tf.where(grows, 0, self._good + 1))
            return tf.constant(True)

        def skip() -> Any:
            self.value.assign(0.5 * self.value)
            self._good.assign(0)
            return tf.constant(False)

        tf.cond(finite, go, skip)
