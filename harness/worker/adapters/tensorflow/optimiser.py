"""Update variables by TensorFlow's fused operations, in the vocabulary's conventions.

``ResourceApplyMomentum`` is v = m v + g; w = w - rate v: torch's heavy ball. Weight decay is added
to the gradient first. ``ResourceApplyAdam`` is
w = w - rate sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + e), which is textbook Adam (and torch's)
exactly when e = epsilon sqrt(1 - b2^t). AdamW's decay is taken off before: Adam's step does not
look at the weight.
"""

from __future__ import annotations

from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Tuple,
)

import tensorflow.compat.v2 as tf

from harness.worker.attribution.marks import Mark, unmarked
from harness.worker.network.words import lowering_of
from harness.worker.network.workload import MOMENTS, SGD, Adam, AdamW, clip


class Update:
    """An optimiser with its slots; ``apply`` belongs inside a traced function."""

    def __init__(
        self,
        rule: Any,
        variables: Mapping[str, Any],
        decayed: Collection[str],
        batch_per_step: int,
        mark: Mark = unmarked,
    ) -> None:
        self._rule = rule
        self._mark = mark
        self._variables = variables
        self._decayed = frozenset(decayed)
        self._rate = rule.rate
        self._kind = lowering_of(OPTIMISERS, type(rule), "tensorflow")
        if isinstance(rule, SGD) and rule.rate_batch is not None:
            self._rate = rule.rate * batch_per_step / rule.rate_batch
        self._slots: Dict[str, List[Any]] = {
            name: [
                tf.Variable(tf.zeros_like(variable), trainable=False)
                for _ in range(self._kind.slots)
            ]
            for name, variable in variables.items()
        }
        dtype = next(iter(variables.values())).dtype
        self._powers = [
            tf.Variable(tf.ones([], dtype), trainable=False) for _ in range(self._kind.powers)
        ]

    def state(self) -> Dict[str, Any]:
        """Give every variable that it keeps, by name."""
        slots = {
            "{}/slot{}".format(name, number): slot
            for name, some in self._slots.items()
            for number, slot in enumerate(some)
        }
        slots.update(("power{}".format(n), power) for n, power in enumerate(self._powers))
        return slots

    def moments(self) -> Dict[str, Dict[str, Any]]:
        """Give the slots by what they hold, then by parameter."""
        return {
            moment: {name: slots[number] for name, slots in self._slots.items()}
            for number, moment in enumerate(MOMENTS[type(self._rule)])
        }

    def powers(self, updates: float) -> Iterator[Tuple[Any, float]]:
        """Give the variables that depend on the number of updates, and what they are then."""
        for power, beta in zip(self._powers, (self._rule.beta1, self._rule.beta2)):
            yield power, beta**updates

    def reset(self) -> None:
        """Forget moments and step count."""
        for slots in self._slots.values():
            for slot in slots:
                slot.assign(tf.zeros_like(slot))
        for power in self._powers:
            power.assign(tf.ones_like(power))

    def apply(self, gradients: Mapping[str, Any]) -> List[Any]:
        """Update each variable when the one before it has its gradient; give what does it.

        Sooner, the slope of its own layer's input may still wait to read it, and it would be copied
        first: in AlexNet 150 MB of new memory a step. Later, it would not run beside the slopes.
        """
        gradients = self._clipped(gradients)
        one = self._kind.start(self)
        awaited: List[Any] = []
        made = []
        for name, gradient in gradients.items():
            with tf.control_dependencies(awaited), self._mark(name.rpartition("/")[0]):
                made.append(one(name, gradient))
            awaited = [gradient]
        return made

    def _clipped(self, gradients: Mapping[str, Any]) -> Mapping[str, Any]:
        """Scale all gradients by what their norm is above the most."""
        most = clip(self._rule)
        if most is None:
            return gradients
        norm = tf.linalg.global_norm(list(gradients.values()))
        factor = tf.minimum(most / norm, tf.ones([], norm.dtype))
        return {name: gradient * factor for name, gradient in gradients.items()}

    def momentum(self, name: str, gradient: Any) -> Any:
        """Update one variable with momentum."""
        variable = self._variables[name]
        if name in self._decayed and self._rule.weight_decay:
            gradient = gradient + self._rule.weight_decay * variable
        return tf.raw_ops.ResourceApplyMomentum(
            var=variable.handle,
            accum=self._slots[name][0].handle,
            lr=tf.constant(self._rate, variable.dtype),
            grad=gradient,
            momentum=tf.constant(self._rule.momentum, variable.dtype),
        )

    def adam(self) -> Callable[[str, Any], Any]:
        """Take the step that all variables share; give what updates one of them."""
        dtype = self._powers[0].dtype
        beta1, beta2 = (tf.constant(b, dtype) for b in (self._rule.beta1, self._rule.beta2))
        power1 = self._powers[0].assign(self._powers[0] * beta1).read_value()
        power2 = self._powers[1].assign(self._powers[1] * beta2).read_value()
        epsilon = self._rule.epsilon * tf.sqrt(1 - power2)

        def update(name: str, gradient: Any) -> Any:
            return tf.raw_ops.ResourceApplyAdam(
                var=self._variables[name].handle,
                m=self._slots[name][0].handle,
                v=self._slots[name][1].handle,
                beta1_power=power1,
                beta2_power=power2,
                lr=tf.constant(self._rate, dtype),
                beta1=beta1,
                beta2=beta2,
                epsilon=epsilon,
                grad=gradient,
            )

        return update

    def adamw(self) -> Callable[[str, Any], Any]:
        """Take a weight's decay off before Adam's step."""
        adam = self.adam()

        def update(name: str, gradient: Any) -> Any:
            if name not in self._decayed:
                return adam(name, gradient)
            variable = self._variables[name]
            lost = self._rate * self._rule.weight_decay * variable
            with tf.control_dependencies([variable.assign_sub(lost, read_value=False)]):
                return adam(name, gradient)

        return update


class Kind(NamedTuple):
    """What one optimiser keeps (slots of each variable, powers of betas) and how it updates."""

    slots: int
    powers: int
    start: Callable[[Update], Callable[[str, Any], Any]]
    """Begins a step; gives what updates one variable by its gradient."""


OPTIMISERS: Dict[type, Kind] = {
    SGD: Kind(1, 0, lambda update: update.momentum),
    Adam: Kind(2, 2, Update.adam),
    AdamW: Kind(2, 2, Update.adamw),
}
