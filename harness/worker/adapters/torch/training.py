"""A training step in torch: lowered network, loss, precision and optimiser together.

The optimisers are torch's fused ones: on a CPU one pass over memory where the plain form takes
several, on a GPU a handful of launches instead of hundreds. But torch 2.13's fused SGD leaves most
bfloat16 weights of a CPU as they were (github.com/pytorch/pytorch/issues/191763): there it is the
plain one. Weight decay is a property of the group that holds the weights.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import torch
from torch import nn

from harness.worker.adapters.torch.losses import COUNTED, LOSSES
from harness.worker.adapters.torch.lowering.canonical import given_tensor, made, named
from harness.worker.adapters.torch.lowering.initial import fill
from harness.worker.adapters.torch.lowering.network import Lowered
from harness.worker.adapters.torch.lowering.norms import is_narrow_on_cpu, narrow
from harness.worker.adapters.torch.lowering.sequences import prepare
from harness.worker.adapters.torch.settings import Settings
from harness.worker.adapters.torch.strategies.strategy import Strategy
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.words import lowering_of
from harness.worker.network.workload import (
    MOMENTS,
    SGD,
    Adam,
    AdamW,
    Training,
    clip,
    learning_rate,
)

KEPT = {"velocity": "momentum_buffer", "first": "exp_avg", "second": "exp_avg_sq"}
"""What torch's optimisers call what they keep."""


class Forward(nn.Module):
    """A network and its loss, which a compiler is given as one."""

    def __init__(self, network: Lowered, workload: Training, *, is_widened: bool) -> None:
        super().__init__()
        self.network = network
        self.loss_of = lowering_of(LOSSES, workload.loss, "torch")
        self._is_widened = is_widened

    def forward(
        self, x: torch.Tensor, target: torch.Tensor, counted: Any, gives_output: bool
    ) -> Tuple[Any, torch.Tensor]:
        """Enqueue the forward pass; give the loss, before it the output where it is wanted.

        What is compiled adds a gradient to that of each output that it gives.
        """
        output = self.network(x)
        if self._is_widened:
            output = _wide(output)  # autocast does so by itself
        loss = self.loss_of(output, target, counted)
        return output if gives_output else None, loss


class Trainer:
    """A network and what trains it; the timed activity and the examination both step through it."""

    def __init__(
        self,
        workload: Training,
        settings: Settings,
        seed: int,
        strategy: Optional[Strategy] = None,
    ) -> None:
        self.settings = settings
        self.strategy = strategy or Strategy()
        self._dimensions = len(workload.network.input) + 1
        self.format = settings.memory_format(len(workload.network.input) - 1)
        self.network = Lowered(workload.network, recomputes=settings.recomputes)
        fill(self.network, seed)
        self.network.to(settings.device)
        if settings.precision == "float64":
            self.network.double()
        elif settings.held == torch.bfloat16:
            narrow(self.network)
        if self.format is not None and settings.is_gpu:
            # cuDNN wants weights in the layout too. oneDNN packs them for itself and hands their
            # gradients back channels-first, which torch would have to copy at every step.
            self.network.to(memory_format=self.format)
        wide = torch.float64 if settings.precision == "float64" else torch.float32
        prepare(self.network, settings.device, wide)
        self.network.train()
        self.plain = Forward(self.network, workload, is_widened=settings.held == torch.bfloat16)
        self.forward: Any = self.strategy.wrap(self.compiled(self.plain))
        self.scaler = torch.amp.GradScaler(
            settings.device.type, enabled=settings.precision == "fp16"
        )
        self._workload = workload
        self._clip = clip(workload.optimiser)
        if self._clip is not None:
            self.strategy.require_gradients_before_update()
        self.optimiser: Any = None

    def compiled(self, module: nn.Module) -> Any:
        """Give what runs a module: Inductor's code where it is asked for."""
        if not self.settings.is_compiled:
            return module
        # Dynamo goes on in eager mode, with a warning that nobody reads.
        torch._dynamo.config.fail_on_recompile_limit_hit = True
        return torch.compile(module, mode=self.settings.mode, dynamic=False)

    def start_optimiser(self, batch_per_step: int) -> None:
        """Begin with fresh optimiser state, at the rate for this batch."""
        chosen = self._workload.optimiser
        rate = learning_rate(chosen, batch_per_step)
        plain = lowering_of(OPTIMISERS, type(chosen), "torch")(chosen, self.network, rate)
        self.optimiser = self.strategy.wrap_optimiser(plain, self.network)

    def step(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Enqueue forward, loss, backward and update; give the loss where it lies."""
        self.optimiser.zero_grad()  # sets them to None, as Horovod's does
        loss = self.passes(x, target)
        self._clip_gradients()
        self.scaler.step(self.optimiser)  # without a scale, just the optimiser's step
        self.scaler.update()
        return loss

    def passes(
        self, x: torch.Tensor, target: torch.Tensor, outputs: Optional[List[Any]] = None
    ) -> torch.Tensor:
        """Enqueue forward, loss and backward, whose gradients are added; give the loss.

        What a micro-batch keeps for its backward pass is gone when the next begins, and so is its
        output unless ``outputs`` keeps it. Ranks exchange the sum of gradients, with the last.
        """
        count = self.settings.accumulate
        if count == 1:
            return self._pass(x, target, None, outputs)
        counted = COUNTED[self._workload.loss](target)
        loss = torch.zeros((), device=x.device)
        for number, (own, asked) in enumerate(zip(x.chunk(count), target.chunk(count)), start=1):
            with self.strategy.exchanging(self.forward, is_last=number == count):
                loss = loss + self._pass(own, asked, counted, outputs)
        return loss

    def _pass(
        self, x: torch.Tensor, target: torch.Tensor, counted: Any, outputs: Optional[List[Any]]
    ) -> torch.Tensor:
        with self.settings.autocast():
            output, loss = self.forward(x, target, counted, outputs is not None)
        self.scaler.scale(loss).backward()
        if outputs is not None:
            outputs.append(output)
        return loss.detach()

    def _clip_gradients(self) -> None:
        """Scale all gradients by what their norm is above the most, and wait for nothing.

        torch's ``clip_grad_norm_`` adds 1e-6 to the norm, which is another rule.
        """
        if self._clip is None:
            return
        if self.scaler.is_enabled():
            self.scaler.unscale_(self.optimiser)
        gradients = [one.grad for one in self.network.parameters() if one.grad is not None]
        norm = nn.utils.get_total_norm(gradients, foreach=True)
        torch._foreach_mul_(gradients, torch.clamp(self._clip / norm, max=1.0))

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set, in place, what is given of parameters, running statistics and moments."""
        with torch.no_grad():
            for name, tensor in named(self.network):
                if name in state:
                    tensor.copy_(given_tensor(state[name]))
                own = self.optimiser.state[tensor] if isinstance(tensor, nn.Parameter) else {}
                for moment, theirs in self._moments(name).items():
                    if moment in state:
                        own.setdefault(theirs, torch.zeros_like(tensor))
                        own[theirs].copy_(given_tensor(state[moment]))
                if "exp_avg" in own and "step" in state:
                    own.setdefault("step", torch.zeros((), device=tensor.device))
                    own["step"].copy_(given_tensor(state["step"]))

    def state(self) -> Iterator[Made]:
        """Give what a step changes; moments are there once a step was made, or they were loaded."""
        for name, tensor in named(self.network):
            yield made(name, tensor, torch.float32)
            own = self.optimiser.state.get(tensor, {})
            for moment, theirs in self._moments(name).items():
                if theirs in own:
                    yield made(moment, own[theirs], torch.float32)

    def _moments(self, name: str) -> Dict[str, str]:
        """Give what the optimiser keeps of a parameter, by its canonical and by torch's name."""
        names = MOMENTS[type(self._workload.optimiser)]
        return {"{}/{}".format(name, one): KEPT[one] for one in names}

    def place(self, x: torch.Tensor) -> torch.Tensor:
        """Bring a batch to the device, into the layout that images have and the weights' type."""
        x = x.to(self.settings.device, self.settings.held if x.is_floating_point() else x.dtype)
        if self.format is None or x.dim() != self._dimensions:
            return x
        return x.contiguous(memory_format=self.format)


def _wide(output: Any) -> Any:
    """Give a loss float32: a softmax over logits of eight bits would have no more itself."""
    return tuple(map(_wide, output)) if isinstance(output, tuple) else output.float()


def decay_groups(network: Lowered, weight_decay: float) -> List[Dict[str, Any]]:
    """Split parameters into those that decay and the rest."""
    if not weight_decay:
        return [{"params": list(network.parameters())}]
    weights = [tensor for name, tensor in named(network) if name.endswith("/weight")]
    known = {id(weight) for weight in weights}
    others = [parameter for parameter in network.parameters() if id(parameter) not in known]
    groups: List[Dict[str, Any]] = [
        {"params": weights, "weight_decay": weight_decay},
        {"params": others},
    ]
    return [group for group in groups if group["params"]]


def _sgd(rule: SGD, network: Lowered, rate: float) -> torch.optim.Optimizer:
    groups = decay_groups(network, rule.weight_decay)
    fused = not any(map(is_narrow_on_cpu, network.parameters()))
    how = {"fused": fused, "foreach": not fused}
    return torch.optim.SGD(groups, lr=rate, momentum=rule.momentum, **how)


def _adam(rule: Adam, network: Lowered, rate: float) -> torch.optim.Optimizer:
    betas = (rule.beta1, rule.beta2)
    return torch.optim.Adam(
        network.parameters(), lr=rate, betas=betas, eps=rule.epsilon, fused=True
    )


def _adamw(rule: AdamW, network: Lowered, rate: float) -> torch.optim.Optimizer:
    groups = decay_groups(network, rule.weight_decay)
    betas = (rule.beta1, rule.beta2)
    return torch.optim.AdamW(
        groups, lr=rate, betas=betas, eps=rule.epsilon, weight_decay=0.0, fused=True
    )


OPTIMISERS: Dict[type, Callable[[Any, Lowered, float], torch.optim.Optimizer]] = {
    SGD: _sgd,
    Adam: _adam,
    AdamW: _adamw,
}
