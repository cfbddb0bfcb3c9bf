"""Faults planted in tinygrad's timed step."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault, counted

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


def sampled(how: str) -> tuple[str, str]:
    """Train on a part of the batch."""
    return f"step({BATCH}", f"step({how}"


FAULTS: dict[str, Fault] = {
    "a step that does nothing": (
        "tinycnn",
        "adapter.py",
        (STEP, "self._loss = self._given['x'][0, 0, 0, 0]"),
        "changes nothing",
    ),
    "every second step skipped": ("tinycnn", "adapter.py", (STEP, TWO), "changes nothing"),
    "training that stops after twelve steps": (
        "tinycnn",
        "adapter.py",
        (STEP, TWELVE),
        "changes nothing",
    ),
    "the first batch for ever": (
        "tinycnn",
        "adapter.py",
        (
            'put(self._given["x"], array_of(given))',
            'self._given["x"] = self._trainer.tensor(array_of(given))',
        ),
        "the gradient of fc/",
    ),
    "forward only": (
        "tinycnn",
        "training.py",
        (REALIZED, "return loss.realize()"),
        "changes nothing",
    ),
    "half the batch": (
        "tinycnn",
        "adapter.py",
        sampled('self._given["x"][::2], self._given["target"][::2]'),
        "the gradient of fc/",
    ),
    "the first eight samples": (
        "tinycnn",
        "adapter.py",
        sampled('self._given["x"][:8], self._given["target"][:8]'),
        "the gradient of fc/",
    ),
    "labels that are all 0": (
        "tinycnn",
        "adapter.py",
        sampled('self._given["x"], self._given["target"] * 0'),
        "the gradient of fc/",
    ),
    "a summed loss": (
        "tinycnn",
        "training.py",
        (LOSS, LOSS.replace("loss.", "(16 * loss).")),
        "the gradient of fc/bias is 16 times what it should be",
    ),
    "a frozen layer": (
        "tinycnn",
        "training.py",
        (UPDATED, f"del named['fc/weight']\n        {UPDATED}"),
        "fc/weight is not trained",
    ),
    "a ReLU that is skipped": ("tinycnn", "lowering.py", ("x.relu()", "x"), "the gradient of fc/"),
    "no update": ("tinycnn", "training.py", (RATE, "(weight, weight * 1.0)"), "no weight moves"),
    "momentum lost": (
        "tinycnn",
        "training.py",
        ("velocity = rule.momentum * self.moments[0][name] + slope", "velocity = slope"),
        "momentum is .* where 0.9 is asked",
    ),
    "a rate doubled": (
        "tinycnn",
        "training.py",
        (RATE, RATE.replace("rate *", "2 * rate *")),
        "the optimiser moves conv1/weight 2 times as far as its rate says",
    ),
    "a decay inverted": (
        "tinycnn",
        "training.py",
        ("slope + rule.weight_decay * weight", "slope - rule.weight_decay * weight"),
        "weight decay is -0.0001 where 0.0001 is asked",
    ),
    "no decay": (
        "tinycnn",
        "training.py",
        ("if rule.weight_decay and", "if False and"),
        "weight decay is .* where 0.0001 is asked",
    ),
    "dropout off": (
        "dropping",
        "lowering.py",
        ("    if not one.drops:\n        return x\n    with", "    return x\n    with"),
        "drop3 drops 0 of",
    ),
    "one mask for all steps": (
        "dropping",
        "lowering.py",
        (DROPPED, f"type(x).manual_seed(1)\n        {DROPPED}"),
        "drops the same values at every step",
    ),
}
