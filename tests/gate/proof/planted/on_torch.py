"""Faults planted in torch's timed step."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault, counted

FOLDER = "harness/worker/adapters/torch/"
STEP = "self._loss = self.trainer.step(*self.batch)"
UPDATE = "            loss.backward()\n            self.optimiser.step()\n"
NETWORK = "        self.network.train()\n"
SGD = "torch.optim.SGD(groups, lr=rate, momentum=rule.momentum, fused=True)"
MEMOISED = """            if not hasattr(self, "held"):
                loss.backward()
                self.held = [p.grad.clone() for p in self.network.parameters()]
            for p, slope in zip(self.network.parameters(), self.held):
                p.grad = slope.clone()
            self.optimiser.step()
"""
FAULTS: dict[str, Fault] = {
    "a step that does nothing": ("tinycnn", "activity.py", (STEP, "pass"), "changes nothing"),
    "forward only": (
        "tinycnn",
        "training.py",
        (UPDATE, "            pass\n"),
        "no weight moves in update 1",
    ),
    "no update": (
        "tinycnn",
        "training.py",
        (UPDATE, "            loss.backward()\n"),
        "no weight moves",
    ),
    "every second step skipped": (
        "tinycnn",
        "activity.py",
        (STEP, counted("self.taken % 2", STEP)),
        "changes nothing",
    ),
    "training that stops after twelve steps": (
        "tinycnn",
        "activity.py",
        (STEP, counted("self.taken <= 12", STEP)),
        "changes nothing",
    ),
    "half the batch": (
        "tinycnn",
        "activity.py",
        (STEP, STEP.replace("*self.batch", "*(one[::2] for one in self.batch)")),
        "the gradient of fc/",
    ),
    "the first eight samples": (
        "tinycnn",
        "activity.py",
        (STEP, STEP.replace("*self.batch", "*(one[:8] for one in self.batch)")),
        "the gradient of fc/",
    ),
    "the first eight samples where it drops": (
        "dropping",
        "activity.py",
        (STEP, STEP.replace("*self.batch", "*(one[:8] for one in self.batch)")),
        "reached by a gradient",
    ),
    "pictures of half the size": (
        "tinycnn",
        "activity.py",
        (STEP, STEP.replace("*self.batch", "self.batch[0][:, :, ::2, ::2], self.batch[1]")),
        "the gradient of fc/",
    ),
    "labels that are all 0": (
        "tinycnn",
        "activity.py",
        (STEP, STEP.replace("*self.batch", "self.batch[0], 0 * self.batch[1]")),
        "the gradient of fc/",
    ),
    "a memoised forward": ("tinycnn", "training.py", (UPDATE, MEMOISED), "the gradient of "),
    "a summed loss": (
        "tinycnn",
        "training.py",
        (UPDATE, UPDATE.replace("loss.backward()", "(16 * loss).backward()")),
        "the gradient of fc/bias is 16 times what it should be",
    ),
    "a frozen layer": (
        "tinycnn",
        "training.py",
        (NETWORK, NETWORK + "        self.network.at['fc'].weight.requires_grad_(False)\n"),
        "fc/weight is not trained",
    ),
    "a ReLU that is skipped": (
        "tinycnn",
        "lowering/network.py",
        ("nn.ReLU(inplace=in_place)", "nn.Identity()"),
        "the gradient of fc/",
    ),
    "a batch norm by its running statistics": (
        "tinycnn",
        "training.py",
        (NETWORK, NETWORK.replace("train()", "eval()")),
        "the gradient of",
    ),
    "momentum lost": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("rule.momentum", "0.0")),
        "the optimiser keeps no velocity",
    ),
    "a damped momentum": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("fused", "dampening=0.9, fused")),
        "the gradient of fc/bias is 0.1 times what it should be",
    ),
    "another momentum": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("rule.momentum", "0.8")),
        "momentum is 0.8 where 0.9 is asked",
    ),
    "a rate doubled": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("lr=rate", "lr=2 * rate")),
        "the optimiser moves conv1/weight 2 times as far as its rate says",
    ),
    "a decay inverted": (
        "tinycnn",
        "training.py",
        ('"weight_decay": weight_decay}', '"weight_decay": -weight_decay}'),
        "weight decay is -0.0001 where 0.0001 is asked",
    ),
    "no decay": (
        "tinycnn",
        "training.py",
        ("if not weight_decay:", "if True:"),
        "weight decay is .* where 0.0001 is asked",
    ),
    "dropout off": (
        "dropping",
        "training.py",
        (NETWORK, NETWORK + "        self.network.at['drop3'].eval()\n"),
        "drop3 drops 0 of",
    ),
    "one mask for all steps": (
        "dropping",
        "activity.py",
        (STEP, "torch.manual_seed(0)\n            " + STEP),
        "drops the same values at every step",
    ),
    "a rate doubled where it drops": (
        "dropping",
        "training.py",
        (SGD, SGD.replace("lr=rate", "lr=2 * rate")),
        "2 times as far as its rate says",
    ),
}
