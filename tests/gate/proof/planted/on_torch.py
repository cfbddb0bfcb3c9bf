"""Faults planted in torch's timed step."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault, counted, known

FOLDER = "harness/worker/adapters/torch/"
STEP = "self._loss = self.trainer.step(*self.batch)"
DUE = f"""{STEP}
        except RuntimeError as error:
            raise failures.read(error) from error

    def sync(self) -> None:
        \"\"\"Return at once: a step on a CPU is done when it returns.\"\"\"
"""
LATE = f"""{DUE.replace(STEP, "self.due = True")}        if self.__dict__.pop("due", False):
            {STEP}
"""
BACKWARD = "        self.scaler.scale(loss).backward()\n"
PASSES = "        loss = self.passes(x, target)\n        self._clip_gradients()\n"
OPTIMISER_STEP = "        self.scaler.step(self.optimiser)"
UPDATE = PASSES + OPTIMISER_STEP
NETWORK = "        self.network.train()\n"
SGD = "torch.optim.SGD(groups, lr=rate, momentum=rule.momentum, **how)"
HOLDING = """
            loss.backward()
            self.held = [p.grad.clone() for p in self.network.parameters()]
        for p, slope in zip(self.network.parameters(), self.held):
            p.grad = slope.clone()
"""
MEMOISED = f"        if not hasattr(self, 'held'):{HOLDING}"
PADDED = "    return _padded(convolution, rest, dimensions, 0.0)\n"
SKIPPED = "        convolution.forward = lambda x: x\n"
FAULTS: dict[str, Fault] = {
    **known(
        {
            "a step that does nothing": ("activity.py", (STEP, "pass")),
            "a convolution that is skipped": (
                "lowering/network.py",
                (PADDED, f"    if site.path == 'block/conv2':\n{SKIPPED}{PADDED}"),
            ),
            "no update": ("training.py", (UPDATE, PASSES)),
            "every second step skipped": ("activity.py", (STEP, counted("self.taken % 2", STEP))),
            "the last step before a sync alone": ("activity.py", (DUE, LATE)),
            "training that stops after twelve steps": (
                "activity.py",
                (STEP, counted("self.taken <= 12", STEP)),
            ),
            "half the batch": (
                "activity.py",
                (STEP, STEP.replace("*self.batch", "*(one[::2] for one in self.batch)")),
            ),
            "the first eight samples": (
                "activity.py",
                (STEP, STEP.replace("*self.batch", "*(one[:8] for one in self.batch)")),
            ),
            "the first eight samples where it drops": (
                "activity.py",
                (STEP, STEP.replace("*self.batch", "*(one[:8] for one in self.batch)")),
            ),
            "pictures of half the size": (
                "activity.py",
                (STEP, STEP.replace("*self.batch", "self.batch[0][:, :, ::2, ::2], self.batch[1]")),
            ),
            "labels that are all 0": (
                "activity.py",
                (STEP, STEP.replace("*self.batch", "self.batch[0], 0 * self.batch[1]")),
            ),
            "a summed loss": (
                "training.py",
                (BACKWARD, BACKWARD.replace("scale(loss)", "scale(16 * loss)")),
            ),
            "a frozen layer": (
                "training.py",
                (NETWORK, NETWORK + "        self.network.at['fc'].weight.requires_grad_(False)\n"),
            ),
            "a ReLU that is skipped": (
                "lowering/network.py",
                ("nn.ReLU(inplace=in_place)", "nn.Identity()"),
            ),
            "a batch norm by its running statistics": (
                "training.py",
                (NETWORK, NETWORK.replace("train()", "eval()")),
            ),
            "another momentum": ("training.py", (SGD, SGD.replace("rule.momentum", "0.8"))),
            "a rate doubled": ("training.py", (SGD, SGD.replace("lr=rate", "lr=2 * rate"))),
            "a decay inverted": (
                "training.py",
                ('"weight_decay": weight_decay}', '"weight_decay": -weight_decay}'),
            ),
            "no decay": ("training.py", ("if not weight_decay:", "if True:")),
            "dropout off": (
                "training.py",
                (NETWORK, NETWORK + "        self.network.at['drop3'].eval()\n"),
            ),
            "one mask for all steps": (
                "activity.py",
                (STEP, "torch.manual_seed(0)\n            " + STEP),
            ),
            "a rate doubled where it drops": (
                "training.py",
                (SGD, SGD.replace("lr=rate", "lr=2 * rate")),
            ),
        }
    ),
    "forward only": (
        "tinycnn",
        "training.py",
        (BACKWARD, "        pass\n"),
        "no weight moves in update 1",
    ),
    "a memoised forward": ("tinycnn", "training.py", (BACKWARD, MEMOISED), "the gradient of "),
    "momentum lost": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("rule.momentum", "0.0")),
        "the optimiser keeps no velocity",
    ),
    "a damped momentum": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("**how", "dampening=0.9, **how")),
        "the gradient of fc/bias is 0.1 times what it should be",
    ),
}
