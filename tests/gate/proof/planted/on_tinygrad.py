"""Faults planted in tinygrad's timed step."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault, counted, known

FOLDER = "harness/worker/adapters/tinygrad/"
STEP = "self._loss = self.captured()"
TWO = counted("self.taken % 2 or self.taken < 4", STEP).replace("            ", "        ")
TWELVE = counted("self.taken <= 12", STEP).replace("            ", "        ")
BATCH = 'self._given["x"], self._given["target"]'
REALIZED = "return loss.realize(*[old.assign(new) for old, new in changes])"
LOSS = "slopes = loss.gradient(*self.parameters.values())"
UPDATED = "changes = self._optimiser.update(self, self.workload.optimiser, named, rate)"
DROPPED = "return x.dropout(layer.rate)"
RATE = "(weight, weight - rate * velocity)"
PADS = "    pads = layer.pad * (x.ndim - 2)\n"
SKIPPED = """    if site.path == "block/conv2":
        return x + 0 * (one.parameters[site.path + "/weight"].sum() + bias.sum())
"""


def sampled(how: str) -> tuple[str, str]:
    """Train on a part of the batch."""
    return f"step({BATCH}", f"step({how}"


FAULTS: dict[str, Fault] = known(
    {
        "a step that does nothing": (
            "adapter.py",
            (STEP, "self._loss = self._given['x'][0, 0, 0, 0]"),
        ),
        "every second step skipped": ("adapter.py", (STEP, TWO)),
        "training that stops after twelve steps": ("adapter.py", (STEP, TWELVE)),
        "the first batch for ever": (
            "adapter.py",
            (
                'put(self._given["x"], array_of(given))',
                'self._given["x"] = self._trainer.tensor(array_of(given))',
            ),
        ),
        "forward only": ("training.py", (REALIZED, "return loss.realize()")),
        "half the batch": (
            "adapter.py",
            sampled('self._given["x"][::2], self._given["target"][::2]'),
        ),
        "the first eight samples": (
            "adapter.py",
            sampled('self._given["x"][:8], self._given["target"][:8]'),
        ),
        "pictures of half the size": (
            "adapter.py",
            sampled('self._given["x"][:, :, ::2, ::2], self._given["target"]'),
        ),
        "a convolution that is skipped": ("lowering.py", (PADS, f"{SKIPPED}{PADS}")),
        "a running variance without Bessel's correction": (
            "lowering.py",
            ("variance * (count / (count - 1))", "variance"),
        ),
        "labels that are all 0": (
            "adapter.py",
            sampled('self._given["x"], self._given["target"] * 0'),
        ),
        "a summed loss": ("training.py", (LOSS, LOSS.replace("loss.", "(16 * loss)."))),
        "a frozen layer": ("training.py", (UPDATED, f"del named['fc/weight']\n        {UPDATED}")),
        "a ReLU that is skipped": ("lowering.py", ("x.relu()", "x")),
        "no update": ("training.py", (RATE, "(weight, weight * 1.0)")),
        "momentum lost": (
            "training.py",
            ("velocity = rule.momentum * self.moments[0][name] + slope", "velocity = slope"),
        ),
        "a rate doubled": ("training.py", (RATE, RATE.replace("rate *", "2 * rate *"))),
        "a decay inverted": (
            "training.py",
            ("slope + rule.weight_decay * weight", "slope - rule.weight_decay * weight"),
        ),
        "no decay": ("training.py", ("if rule.weight_decay and", "if False and")),
        "dropout off": (
            "lowering.py",
            ("    if not one.drops:\n        return x\n    with", "    return x\n    with"),
        ),
        "one mask for all steps": (
            "lowering.py",
            (DROPPED, f"type(x).manual_seed(1)\n        {DROPPED}"),
        ),
    }
)
