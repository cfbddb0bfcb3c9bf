"""Train a Keras model on torch: backward and Keras' optimiser, as its guide has it.

Keras' optimisers update all variables together on torch, by operations over lists; the one that is
ours does so too.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

import torch
from keras import ops
from keras.src.backend.torch.optimizers.torch_parallel_optimizer import TorchParallelOptimizer

from harness.worker.adapters.keras.training import TextbookAdam, Trainer
from harness.worker.adapters.torch import failures, probing
from harness.worker.adapters.torch.products import Products
from harness.worker.adapters.torch.settings import Settings
from harness.worker.facts.multiplications import STEPS, Count


class ParallelTextbookAdam(TorchParallelOptimizer, TextbookAdam):
    """The textbook's Adam over all variables together."""

    def _parallel_update_step(self, grads: Any, variables: Any, learning_rate: Any) -> None:
        weights = [one.value for one in variables]
        places = [self._get_variable_index(one) for one in variables]
        firsts = [self._momentums[place].value for place in places]
        seconds = [self._velocities[place].value for place in places]
        dtype, beta1, beta2 = weights[0].dtype, float(self.beta_1), float(self.beta_2)
        step = self.iterations.value.to(dtype) + 1
        root = torch.sqrt(1 - beta2**step)
        rate = ops.cast(learning_rate, variables[0].dtype) * root / (1 - beta1**step)
        torch._foreach_lerp_(firsts, grads, 1 - beta1)
        torch._foreach_mul_(seconds, beta2)
        torch._foreach_addcmul_(seconds, grads, grads, 1 - beta2)
        below = torch._foreach_sqrt(seconds)
        torch._foreach_add_(below, self.epsilon * root)
        moved = torch._foreach_div(firsts, below)
        torch._foreach_mul_(moved, rate)
        torch._foreach_sub_(weights, moved)


class TorchStepper:
    """The step of a trainer, and what the gate asks beside it."""

    def __init__(self, trainer: Trainer, settings: Settings) -> None:
        self.trainer = trainer
        self._settings = settings
        self._weights = [one.value for one in trainer.variables]
        self._device = self._weights[0].device

    def tensor(self, array: Any) -> Any:
        """Put a copy of an array on the device."""
        return torch.tensor(array, device=self._device)

    def step(self, x: Any, target: Any) -> Any:
        """Enqueue one step."""
        try:
            _, loss = self._passes(self.trainer.model, x, target)
            with torch.no_grad():
                slopes = [weight.grad for weight in self._weights]
                forces = self.trainer.forces(slopes, self._weights)
                self.trainer.optimiser.apply(forces, self.trainer.variables)
        except RuntimeError as error:
            raise failures.read(error) from error
        return loss.detach()

    def wait(self, _loss: Any) -> None:
        """Wait for the device; a step on a CPU is done when it returns."""
        if self._settings.is_gpu:
            torch.cuda.synchronize(self._device)

    def settle(self) -> None:
        """Change nothing: Keras' variables are torch's."""

    def gradients(self, x: Any, target: Any) -> Tuple[Any, Any, Dict[str, Any], Dict[str, Any]]:
        """Give output, loss, gradients and each layer's output; move running statistics."""
        found, loss = self._passes(self.trainer.lowering.watched(), x, target)
        slopes = {name: one.grad for name, one in zip(self.trainer.names, self._weights)}
        return found["output"], loss, slopes, found["layers"]

    def alone(
        self, path: str, own: Mapping[str, Any], moved: Mapping[str, Any], *, to_input: bool
    ) -> Tuple[Any, Any]:
        """Give a layer alone, forward and both ways; of what it holds and what it moves.

        Forward gives the output and what moved; both ways also the gradients, the input's first.
        """
        held = [one.value for one in own.values()]

        def forward(x: Any) -> Any:
            y = self.trainer.lowering.call(path, x)
            return y, {name: one.value for name, one in moved.items()}

        def both(x: Any, slope: Any) -> Any:
            x = x.requires_grad_() if to_input else x
            sources = [x, *held] if to_input else held
            y, after = forward(x)
            return y, torch.autograd.grad(y, sources, slope.to(y.dtype)), after

        return forward, both

    def array(self, value: Any) -> Any:
        """Bring values to the host, in float64."""
        return value.detach().double().cpu().numpy()

    def multiplications(self, activity: Any) -> Count:
        """Count those of a step, by the operators that it dispatches."""
        with Products() as products:
            for _ in range(STEPS):
                activity.step()
            activity.sync()
        made: Count = products.found.of_step(1 / STEPS, "operators that torch dispatched")
        return made

    def observe(self, activity: Any) -> Dict[str, Any]:
        """Say which operators, kernels, types and threads a step uses."""
        return probing.observe(activity, self.trainer.model, self._settings)

    def _passes(self, model: Any, x: Any, target: Any) -> Tuple[Any, Any]:
        for weight in self._weights:
            weight.grad = None
        found = model(x, training=True)
        loss = self.trainer.loss_of(target, found["output"] if isinstance(found, dict) else found)
        loss.backward()
        return found, loss
