"""Open a torch network to the gate: the same lowering and the same step, laid bare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import torch
from torch import nn
from torch._dynamo.exc import TorchDynamoException

from harness.worker.adapters.torch.lowering.canonical import (
    given_tensor,
    made,
    multiplied,
    named,
)
from harness.worker.adapters.torch.lowering.network import operator
from harness.worker.adapters.torch.lowering.sequences import Both
from harness.worker.adapters.torch.settings import AUTOCAST, Settings
from harness.worker.adapters.torch.training import Trainer
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.shapes import vocabulary
from harness.worker.network.workload import Training


class TorchLayerPass:
    """One layer alone; compiled only where it is the whole network: 160 would take minutes."""

    def __init__(
        self,
        trainer: Trainer,
        path: str,
        given: Tensor,
        gradient: Tensor,
        to_input: bool,
        arriving: torch.dtype,
    ) -> None:
        self._trainer = trainer
        self._module = trainer.network.at[path]
        self._module.train()
        is_whole = len(trainer.network.at) == 1
        self._run = trainer.compiled(trainer.network) if is_whole else self._module
        x = trainer.place(given_tensor(given))
        if x.is_floating_point():  # tokens stay as they are
            x = x.to(arriving)
        self._x = x.requires_grad_(to_input)
        # A view keeps the leaf itself from being overwritten by a layer that works in place.
        self._is_in_place = getattr(operator(self._module), "inplace", False)
        self._gradient = given_tensor(gradient)
        self._incoming: Optional[torch.Tensor] = None
        self._output: Any = None

    def forward(self) -> None:
        """Enqueue the forward pass."""
        with self._trainer.settings.autocast():
            self._output = self._run(self._x.clone() if self._is_in_place else self._x)

    def both(self) -> None:
        """Enqueue both passes."""
        for _, tensor in multiplied(operator(self._module)):
            tensor.grad = None
        self._x.grad = None
        self.forward()
        if self._incoming is None:
            self._incoming = self._trainer.place(self._gradient.to(self._output.dtype))
        self._output.backward(self._incoming)

    def sync(self) -> None:
        """Wait for the device."""
        if self._trainer.settings.is_gpu:
            torch.cuda.synchronize(self._trainer.settings.device)

    def made(self) -> Iterator[Made]:
        """Give what both passes computed."""
        yield made("output", self._output)
        if self._x.requires_grad:
            yield made("input-gradient", self._x.grad)
        for kind, tensor in multiplied(operator(self._module)):
            if tensor.requires_grad:
                yield made("gradient/" + kind, tensor.grad)
            else:
                yield made("statistic/" + kind, tensor)


class TorchSubject:
    """One network under examination."""

    def __init__(self, workload: Training, settings: Settings, precision: str) -> None:
        self._is_wide = precision == "float64"
        self._settings = replace(settings, precision="float64") if self._is_wide else settings
        self._workload = workload
        self._trainer = Trainer(workload, self._settings, seed=0)
        self._eager: Optional[str] = None
        self._before: Dict[str, torch.Tensor] = {}
        self._types: Dict[str, torch.dtype] = {}
        for module in self._trainer.network.modules():
            if isinstance(module, nn.Dropout):
                module.eval()

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set every parameter and running statistic."""
        own = dict(self._named())
        if set(own) != set(state):
            raise ValueError("state differs in {}".format(sorted(set(own) ^ set(state))))
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(given_tensor(state[name]))

    def reset(self) -> None:
        """Forget moments and step count."""
        self._trainer.optimiser = None

    def gradients(self, given: Tensor, target: Tensor) -> Iterator[Made]:
        """Run forward and backward; what is compiled shows its ends only, so layers run before."""
        self._trainer.network.zero_grad(set_to_none=True)
        batch = self._batch(given, target)
        if self._is_wide:
            yield from self._activations(batch[0])
        try:
            outputs, loss = self._pass(batch)
        except TorchDynamoException as error:
            if not self._is_wide:
                raise
            self._run_eagerly(error)
            outputs, loss = self._pass(batch)
        yield made("output", torch.cat([_joined(one) for one in outputs]))
        yield made("loss", loss)
        for name, parameter in self._named():
            if parameter.requires_grad:
                yield made("gradient/" + name, parameter.grad)

    def update(self, given: Tensor, target: Tensor) -> None:
        """Run one whole training step."""
        if self._trainer.optimiser is None:
            self._trainer.start_optimiser(given.shape[0])
        self._trainer.step(*self._batch(given, target))

    def state(self) -> Iterator[Made]:
        """Give every parameter and running statistic."""
        for name, tensor in self._named():
            yield made(name, tensor)

    def layer(
        self, path: str, given: Tensor, gradient: Tensor, to_input: bool = True
    ) -> TorchLayerPass:
        """Open one layer alone; a Dropout drops here, a norm moves its statistics."""
        arriving = self._arriving()[path]
        return TorchLayerPass(self._trainer, path, given, gradient, to_input, arriving)

    def facts(self) -> Mapping[str, Any]:
        """Say what the examination ran with."""
        return {
            "torch": torch.__version__,
            "compute_type": str(self._settings.compute).replace("torch.", ""),
            "device": str(self._settings.device),
            "layout": "channels-first" if self._trainer.format is None else "channels-last",
            "compiled": self._settings.is_compiled and self._eager is None,
            "eager": self._eager,
        }

    def _batch(self, given: Tensor, target: Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        wide = self._settings.compute == torch.float64
        x, y = given_tensor(given), given_tensor(target).to(self._settings.device)
        if not wide:
            x, y = (one.float() if one.is_floating_point() else one for one in (x, y))
        return self._trainer.place(x), y

    def _named(self) -> Iterator[Tuple[str, torch.Tensor]]:
        return named(self._trainer.network)

    def _pass(self, batch: Tuple[torch.Tensor, torch.Tensor]) -> Any:
        outputs: List[Any] = []
        return outputs, self._trainer.passes(*batch, outputs)

    def _run_eagerly(self, error: Exception) -> None:
        """Give up compiling, at no pass taken."""
        self._eager = str(error).strip().splitlines()[0]
        self._trainer.forward = self._trainer.plain
        self._restore()

    def _activations(self, x: torch.Tensor) -> Iterator[Made]:
        """Run the layers one by one, compiled or not, and leave running statistics alone."""
        network = self._trainer.network
        self._before = {name: tensor.clone() for name, tensor in network.named_buffers()}
        seen: Dict[str, torch.Tensor] = {}
        hooks = self._watch(seen)
        with torch.no_grad():
            network(x)
        for hook in hooks:
            hook.remove()
        self._restore()
        for path, activation in seen.items():
            yield made("activation/" + path, activation)

    def _arriving(self) -> Mapping[str, torch.dtype]:
        """Say in which type each layer is given its input in the whole network, as it is timed.

        Under autocast it is not that of products everywhere: past the blocks of a network of
        sequences flows float32, and torch sums a norm's gradients in the type of what it was given.
        """
        network, wanted = self._trainer.network, self._settings.compute
        if not self._types and (len(network.at) == 1 or self._settings.precision not in AUTOCAST):
            self._types = dict.fromkeys(network.at, wanted)
        elif not self._types:
            hooks = [
                module.register_forward_pre_hook(_keep_type(self._types, path, wanted))
                for path, module in network.at.items()
            ]
            self._before = {name: tensor.clone() for name, tensor in network.named_buffers()}
            with torch.no_grad(), self._settings.autocast():
                network(self._any_samples())
            self._restore()
            for hook in hooks:
                hook.remove()
        return self._types

    def _any_samples(self) -> torch.Tensor:
        shape = (2, *self._workload.network.input)  # a norm of one number has no variance
        if vocabulary(self._workload.network) is not None:
            return torch.zeros(shape, dtype=torch.int64, device=self._settings.device)
        return self._trainer.place(torch.zeros(shape))

    def _restore(self) -> None:
        for name, tensor in self._trainer.network.named_buffers():
            tensor.copy_(self._before[name])

    def _watch(self, seen: Dict[str, torch.Tensor]) -> Any:
        return [
            module.register_forward_hook(_keep_output(seen, path))
            for path, module in self._trainer.network.at.items()
            if not isinstance(module, (nn.Dropout, Both))
        ]


def _joined(output: Any) -> torch.Tensor:
    """Put the outputs of two heads side by side, as the vocabulary counts them."""
    if isinstance(output, torch.Tensor):
        return output
    return torch.cat([one.flatten(1) for one in output], dim=1)


def _keep_type(seen: Dict[str, torch.dtype], path: str, narrow: torch.dtype) -> Any:
    def keep(_module: Any, inputs: Any) -> None:
        arrives = inputs[0].dtype
        seen[path] = arrives if arrives.is_floating_point else narrow

    return keep


# What a hook sees may be overwritten by the next layer, so it keeps a copy.


def _keep_output(seen: Dict[str, torch.Tensor], path: str) -> Any:
    def keep(_module: Any, _inputs: Any, output: torch.Tensor) -> None:
        seen[path] = output.detach().clone()

    return keep
