"""Faults planted in torch's timed step: those of ``on_torch.py``, and such as change less."""

from __future__ import annotations

from tests.gate.proof.planted import on_torch
from tests.gate.proof.planted.fault import Fault
from tests.gate.proof.planted.on_torch import (
    FOLDER,
    NETWORK,
    OPTIMISER_STEP,
    PASSES,
    SGD,
    STEP,
    UPDATE,
)

__all__ = ["FAULTS", "FOLDER"]

SMOOTHED = ("(functional.cross_entropy, output, target, count", ", label_smoothing=0.1")
HOOK = ".register_forward_pre_hook(lambda m, a: (a[0].{}().float(),))"
GROUPS = "    groups = decay_groups(network, rule.weight_decay)\n    betas"
DECAYING = "eps=rule.epsilon, weight_decay=0.0"
EACH = "        for p in self.network.parameters():\n            "
ADAM = "betas=betas, eps=rule.epsilon, fused=True"
LOADED = '                    own["step"].copy_(given_tensor(state["step"]))\n'
COPIED = """            for module in self.network.modules():
                if hasattr(module, "tables"):
                    own = module.tables[0].weight
                    held = own.detach().clone()
                    module.forward = lambda x: nn.functional.linear(
                        x, own + (held - own).detach(), module.bias
                    )
"""
SPOILT = """            usual, made = type(self.optimiser).step, []

            def step():
                usual(self.optimiser)
                for p in self.network.parameters():
                    p.data.mul_(float("nan") if made else 1.0)
                made.append(True)

            self.optimiser.step = step
"""
KEPT = OPTIMISER_STEP + "\n        for kept in self.optimiser.state.values():\n            "
TOKENS = "    flat = output.flatten(0, 1), target.flatten()\n"
SECOND = "the optimiser keeps another second moment of tokens/weight than its rule makes: 0.5 times"
SHORTCUT = "            y += self.shortcut(x)\n            return y\n"


def batch(how: str, words: str = "the gradient of ") -> Fault:
    """Step on something else than the batch."""
    return "tinycnn", "activity.py", (STEP, STEP.replace("*self.batch", how)), words


def texts(how: str) -> Fault:
    """Step on something else than the batch of texts."""
    return ("tinygpt", *batch(how)[1:])


def update(how: str, words: str) -> Fault:
    """Update otherwise from the gradients."""
    return "tinycnn", "training.py", (UPDATE, PASSES + how), words


def sgd(old: str, new: str, words: str) -> Fault:
    """Train by another rule."""
    return "tinycnn", "training.py", (SGD, SGD.replace(old, new)), words


def module(change: str, words: str, network: str = "tinycnn") -> Fault:
    """Change a module once the network is made."""
    line = f"        self.network.at{change}\n"
    return network, "training.py", (NETWORK, NETWORK + line), words


def adam(old: str, new: str) -> Fault:
    """Train by another Adam."""
    words = "does not move as|times as far as|keeps (no|another) second"
    return "adam", "training.py", (ADAM, ADAM.replace(old, new)), words


FAULTS: dict[str, Fault] = {
    **on_torch.FAULTS,
    "the last sample left out": batch("*(one[:-1] for one in self.batch)"),
    "one sample for all": batch("*(one[:1].expand_as(one).clone() for one in self.batch)"),
    "labels of other samples": batch("self.batch[0], self.batch[1].flip(0)"),
    "labels one too high": batch("self.batch[0], (self.batch[1] + 1) % 10"),
    "channels in reverse order": batch("self.batch[0].flip(1), self.batch[1]"),
    "pictures mirrored": batch("self.batch[0].flip(3), self.batch[1]"),
    "pictures half as bright": batch("0.5 * self.batch[0], self.batch[1]", "bn1/|gradient"),
    "pictures in bf16": batch("self.batch[0].bfloat16().float(), self.batch[1]"),
    "gradients that add up": (
        "tinycnn",
        "training.py",
        ("        self.optimiser.zero_grad()  # sets them to None, as Horovod's does\n", ""),
        "the gradient of ",
    ),
    "two updates for one": update(
        OPTIMISER_STEP + "\n" + OPTIMISER_STEP, "momentum is|the gradient of |times"
    ),
    "gradients clipped": update(
        "        nn.utils.clip_grad_norm_(self.network.parameters(), 1e-3)\n" + OPTIMISER_STEP,
        "times what it should be",
    ),
    "gradients clipped one by one": update(
        "        nn.utils.clip_grad_value_(self.network.parameters(), 0.1)\n" + OPTIMISER_STEP,
        "the gradient of ",
    ),
    "noise in gradients": update(
        EACH
        + "p.grad.add_(3e-4 * p.grad.abs().max() * torch.randn_like(p.grad))\n"
        + OPTIMISER_STEP,
        "the gradient of ",
    ),
    "weights averaged with those before": update(
        "        old = [p.detach().clone() for p in self.network.parameters()]\n"
        + OPTIMISER_STEP
        + "\n        for p, before in zip(self.network.parameters(), old):\n"
        + "            p.data.lerp_(before, 0.01)\n",
        "0.99 times as far as its rate says",
    ),
    "gradients in bf16": update(
        EACH + "p.grad = p.grad.bfloat16().float()\n" + OPTIMISER_STEP, "the gradient of "
    ),
    "gradients that are 1 % too long": update(
        EACH + "p.grad.mul_(1.01)\n" + OPTIMISER_STEP, "is 1.01 times what it should be"
    ),
    "the signs of gradients": update(
        EACH + "p.grad.sign_()\n" + OPTIMISER_STEP, "the gradient of "
    ),
    "weights kept in bf16": update(
        OPTIMISER_STEP + "\n" + EACH + "p.data.copy_(p.data.bfloat16())\n",
        "does not move as the optimiser's rule says",
    ),
    "a rate that falls with every step": update(
        OPTIMISER_STEP
        + "\n        for group in self.optimiser.param_groups:\n"
        + "            group['lr'] *= 0.9\n",
        "times as far as its rate says",
    ),
    "a rate that warms up": update(
        "        self.taken = getattr(self, 'taken', 0) + 1\n"
        "        for group in self.optimiser.param_groups:\n"
        "            full = group.setdefault('full', group['lr'])\n"
        "            group['lr'] = full * min(1.0, self.taken / 1000)\n" + OPTIMISER_STEP,
        "times as far as its rate says",
    ),
    "a loss that is maximised": sgd("**how", "maximize=True, **how", "-1 times what it should be"),
    "a momentum that looks ahead": sgd(
        "**how", "nesterov=True, **how", "does not move as the optimiser's rule says"
    ),
    "a rate that is 1 % too high": sgd("lr=rate", "lr=1.01 * rate", "1.01 times as far"),
    "a momentum that is 1 % too low": sgd("rule.momentum", "0.891", "momentum is 0.891 where 0.9"),
    "a decay doubled": (
        "tinycnn",
        "training.py",
        ('"weight_decay": weight_decay}', '"weight_decay": 2 * weight_decay}'),
        "weight decay is 0.0002 where 0.0001 is asked",
    ),
    "a decay of biases and norms too": (
        "tinycnn",
        "training.py",
        ('{"params": others},', '{"params": others, "weight_decay": weight_decay},'),
        "weight decay is 0.0001 where 0 is asked",
    ),
    "a frozen bias": module("['fc'].bias.requires_grad_(False)", "fc/bias is not trained"),
    "a frozen batch norm": module("['bn1'].weight.requires_grad_(False)", "bn1/gamma is not"),
    "running statistics that stand still": module("['bn1'].momentum = 0.0", "bn1/"),
    "running statistics that move too fast": module("['bn1'].momentum = 0.2", "bn1/"),
    "running statistics that move 0.2 % too fast": module(
        "['bn1'].momentum = 0.1002", "bn1/mean is 0.2% of its change off"
    ),
    "a layer's input in fp16": module("['conv2']" + HOOK.format("half"), "the gradient of "),
    "the last layer's input in bf16": module(
        "['fc']" + HOOK.format("bfloat16"), "the gradient of fc/weight is wrong"
    ),
    "the epsilon of others": module("['bn1'].eps = 1e-3", "the gradient of "),
    "AdamW without decay": (
        "tinyvit",
        "training.py",
        (GROUPS, GROUPS.replace("rule.weight_decay", "0.0")),
        "patches/weight does not move as the optimiser's rule says",
    ),
    "AdamW that decays biases and norms too": (
        "tinyvit",
        "training.py",
        (DECAYING, DECAYING.replace("0.0", "rule.weight_decay")),
        "bias does not move as the optimiser's rule says",
    ),
    "Adam's decay for AdamW's": (
        "tinyvit",
        "training.py",
        ("torch.optim.AdamW(", "torch.optim.Adam("),
        "the gradient of |does not move as",
    ),
    "half of the texts": texts("*(one[::2] for one in self.batch)"),
    "the second half of each text left out": texts("*(one[:, :32] for one in self.batch)"),
    "a second moment that is halved behind each update": (
        "tinygpt",
        "training.py",
        (UPDATE, f"{PASSES}{KEPT}kept['exp_avg_sq'].mul_(0.5)"),
        SECOND,
    ),
    "a count of updates that stands still": (
        "tinygpt",
        "training.py",
        (UPDATE, f"{PASSES}{KEPT}kept['step'].sub_(1)"),
        "the optimiser moves .* times as far as its rate says",
    ),
    "a head with a copy of its table": (
        "tinygpt",
        "training.py",
        (LOADED, LOADED + COPIED),
        "is wrong where an update follows another",
    ),
    "an update that follows another ends in no numbers": (
        "tinygpt",
        "training.py",
        (LOADED, LOADED + SPOILT),
        "is not a number after update 4, which follows another",
    ),
    "tables that do not decay": (
        "tinybert",
        "training.py",
        (
            'if name.endswith("/weight")]',
            'if name.endswith("/weight") and not name.startswith(("tokens", "positions"))]',
        ),
        "weight decay is 0 where 0.01 is asked",
    ),
    "gradients clipped at twice the norm": (
        "tinygpt",
        "training.py",
        ("torch.clamp(self._clip / norm", "torch.clamp(2 * self._clip / norm"),
        "times what it should be",
    ),
    "the first position of each text left out of the loss": (
        "tinygpt",
        "losses.py",
        (TOKENS, "    target = functional.pad(target[:, 1:], (1, 0), value=MASKED)\n" + TOKENS),
        "the gradient of ",
    ),
    "targets of other texts": texts("self.batch[0], self.batch[1].flip(0)"),
    "attention that sees ahead": (
        "tinygpt",
        "lowering/sequences.py",
        ("is_causal=layer.causal", "is_causal=False"),
        "the gradient of ",
    ),
    "gradients that are not clipped": (
        "tinyvit",
        "training.py",
        ("self._clip = clip(workload.optimiser)", "self._clip = None"),
        "times what it should be",
    ),
    "another epsilon": module("['bn1'].eps = 0.1", "the gradient of "),
    "labels smoothed": (
        "tinycnn",
        "losses.py",
        (SMOOTHED[0], "".join(SMOOTHED)),
        "the gradient of ",
    ),
    "labels smoothed a little": (
        "tinycnn",
        "losses.py",
        (SMOOTHED[0], "".join(SMOOTHED).replace("0.1", "0.01")),
        "the gradient of fc/bias is 0.99 times what it should be",
    ),
    "a shortcut without a gradient": (
        "tinycnn",
        "lowering/network.py",
        (SHORTCUT, SHORTCUT.replace("(x)", "(x).detach()")),
        "the gradient of ",
    ),
    "a residual without its shortcut": (
        "tinycnn",
        "lowering/network.py",
        (SHORTCUT, "            return y\n"),
        "the gradient of ",
    ),
    "an average for a maximum": (
        "tinycnn",
        "lowering/network.py",
        ("2: nn.MaxPool2d", "2: nn.AvgPool2d"),
        "the gradient of ",
    ),
    "bf16 where fp32 is asked": (
        "tinycnn",
        "training.py",
        ("with self.settings.autocast():", "with torch.autocast('cpu', dtype=torch.bfloat16):"),
        "the gradient of ",
    ),
    "weights that are not loaded": (
        "tinycnn",
        "activity.py",
        ("self.trainer.load(state)", "pass"),
        "",
    ),
    "a batch that is not taken": (
        "tinycnn",
        "activity.py",
        ("own.copy_(given_tensor(tensor))", "pass"),
        "the gradient of ",
    ),
    "a dropout's rate halved": module("['drop3'].p = 0.25", "drop3", "dropping"),
    "a dropout that forgets one layer": module("['drop4'].eval()", "drop4 drops 0", "dropping"),
    "another rate of Adam": (
        "adam",
        "training.py",
        ("network.parameters(), lr=rate", "network.parameters(), lr=2 * rate"),
        "times as far as its rate says",
    ),
    "another second moment of Adam": adam("betas=betas", "betas=(0.9, 0.99)"),
    "another first moment of Adam": (
        "adam",
        "training.py",
        (ADAM, ADAM.replace("betas=betas", "betas=(0.8, 0.999)")),
        "momentum is 0.8 where 0.9 is asked",
    ),
    "another epsilon of Adam": adam("rule.epsilon", "1e-3"),
    "Adam with the largest second moment": adam("fused", "amsgrad=True, fused"),
}
