"""Train a Keras model on JAX: one pure step, compiled, whose state is donated.

As Keras' guide "Writing a training loop from scratch in JAX" has it: ``stateless_call`` and
``stateless_apply`` over the values of all variables, which stay outside Keras between steps. What
goes in is given away, so that XLA updates it in place.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence, Tuple

import jax
import keras
import numpy

from harness.worker.adapters.jax import adapter, probing
from harness.worker.adapters.keras.training import Trainer
from harness.worker.facts import hlo_multiplications
from harness.worker.facts.multiplications import Count, calls_per_step


class JaxStepper:
    """The step of a trainer, and what the gate asks beside it."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self._others = trainer.model.non_trainable_variables
        at = {id(one): number for number, one in enumerate(trainer.variables)}
        self._in_model = [at[id(one)] for one in trainer.model.trainable_variables]
        """Which weight each of the model's is: Keras orders them as it met their layers."""
        self._state: Any = None
        """Of weights, statistics and optimiser, while steps are taken; None: Keras has them."""
        self._step: Any = jax.jit(self._pure, donate_argnums=0)

    def tensor(self, array: Any) -> Any:
        """Put an array on the device, in its own type as JAX keeps it."""
        return jax.numpy.array(array)

    def step(self, x: Any, target: Any) -> Any:
        """Enqueue one step."""
        self._take()
        try:
            self._state, loss = self._step(self._state, x, target)
        except jax.errors.JaxRuntimeError as error:
            raise adapter.told(error) from error
        return loss

    def wait(self, loss: Any) -> None:
        """Wait for the last step."""
        try:
            jax.block_until_ready((self._state, loss))
        except jax.errors.JaxRuntimeError as error:
            raise adapter.told(error) from error

    def settle(self) -> None:
        """Give all values back to Keras' variables."""
        if self._state is not None:
            for variables, values in zip(self._variables(), self._state):
                for variable, value in zip(variables, values):
                    variable.assign(value)
            self._state = None

    def gradients(self, x: Any, target: Any) -> Tuple[Any, Any, Dict[str, Any], Dict[str, Any]]:
        """Give output, loss, gradients and each layer's output; move running statistics."""
        model = self.trainer.lowering.watched()
        names = {id(one): name for name, one in zip(self.trainer.names, self.trainer.variables)}

        def run(weights: Any, others: Any) -> Any:
            found, moved = model.stateless_call(weights, others, x, training=True)
            loss = self.trainer.loss_of(target, found["output"])
            return loss, (loss, found, moved)

        weights, others = model.trainable_variables, model.non_trainable_variables
        given = [one.value for one in weights], [one.value for one in others]
        slopes, (loss, found, moved) = jax.jit(jax.grad(run, has_aux=True))(*given)
        for variable, value in zip(others, moved):
            variable.assign(value)
        named = {names[id(one)]: slope for one, slope in zip(weights, slopes)}
        return found["output"], loss, named, found["layers"]

    def alone(
        self, path: str, own: Mapping[str, Any], moved: Mapping[str, Any], *, to_input: bool
    ) -> Tuple[Any, Any]:
        """Compile a layer alone, forward and both ways; of what it holds and what it moves.

        Forward gives the output and what moved; both ways also the gradients, the input's first.
        """
        lowering = self.trainer.lowering

        def forward(x: Any, held: Sequence[Any]) -> Any:
            kept = [*zip(own.values(), held), *((one, one.value) for one in moved.values())]
            with keras.StatelessScope(state_mapping=kept) as scope:
                y = lowering.call(path, x)
                return y, {n: scope.get_current_value(one) for n, one in moved.items()}

        def both(x: Any, held: Sequence[Any], slope: Any) -> Any:
            def run(*sources: Any) -> Any:
                return forward(sources[0] if to_input else x, sources[-1])

            sources = (x, held) if to_input else (held,)
            y, back, after = jax.vjp(run, *sources, has_aux=True)
            *before, of_held = back(slope.astype(y.dtype))
            return y, [*before, *of_held], after

        held = [one.value for one in own.values()]
        compiled = jax.jit(forward), jax.jit(both)
        return lambda x: compiled[0](x, held), lambda x, slope: compiled[1](x, held, slope)

    def array(self, value: Any) -> Any:
        """Bring values to the host, in float64."""
        return numpy.asarray(value).astype(numpy.float64)

    def multiplications(self, activity: Any) -> Count:
        """Count those of the step, in the text of what XLA compiled."""
        self._take()
        text = self._step.lower(self._state, *activity.batch).compile().as_text()
        calls = calls_per_step(activity, "stepped")
        return hlo_multiplications.tally(text).of_step(calls, "XLA's compiled step")

    def observe(self, activity: Any) -> Dict[str, Any]:
        """Say what the compiled step is made of."""
        self._take()
        self._step = self._step.lower(self._state, *activity.batch).compile()
        return probing.observe(activity, self._step, self.placed)

    def placed(self) -> Sequence[Any]:
        """Give the arrays that are trained."""
        return list(self._state[0])

    def _variables(self) -> Tuple[Any, Any, Any]:
        return self.trainer.variables, self._others, self.trainer.optimiser.variables

    def _take(self) -> None:
        """Take all values out of Keras, which forgets them, as its own ``fit`` does: no second
        copy stays, and what is donated is nobody else's.
        """
        if self._state is None:
            self._state = [[one.value for one in some] for some in self._variables()]
            for variables in self._variables():
                for variable in variables:
                    variable._value = None

    def _pure(self, state: Any, x: Any, target: Any) -> Any:
        weights, others, kept = state
        trainer = self.trainer

        def run(weights: Any) -> Any:
            given = [weights[at] for at in self._in_model]
            output, moved = trainer.model.stateless_call(given, others, x, training=True)
            return trainer.loss_of(target, output), moved

        (loss, moved), slopes = jax.value_and_grad(run, has_aux=True)(weights)
        forces = trainer.forces(slopes, weights)
        weights, kept = trainer.optimiser.stateless_apply(kept, forces, weights)
        return [list(weights), list(moved), list(kept)], loss
