"""Faults planted in JAX's timed step."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault, counted

FOLDER = "harness/worker/adapters/jax/"
OURS = "self.trained, self._loss = self._step(self.trained, self._given)"
SLOPES = "slopes(net, workload, precision, state, given, draw)"
FAULTS: dict[str, Fault] = {
    "a step that does nothing": ("tinycnn", "adapter.py", (OURS, "self._loss = 0.0"), "nothing"),
    "every second step skipped": (
        "tinycnn",
        "adapter.py",
        (OURS, counted("self.taken % 2", OURS)),
        "changes nothing",
    ),
    "the first eight samples": (
        "tinycnn",
        "training.py",
        (SLOPES, SLOPES.replace("given,", "Given(given.input[:8], given.target[:8]),")),
        "the gradient of fc/",
    ),
    "no update": (
        "tinycnn",
        "training.py",
        ("return weight - rate * velocity, (velocity,)", "return weight, (velocity,)"),
        "no weight moves",
    ),
    "momentum lost": (
        "tinycnn",
        "training.py",
        ("velocity = rule.momentum * old[0] + slope", "velocity = slope"),
        "momentum is .* where 0.9 is asked",
    ),
    "a rate doubled": (
        "tinycnn",
        "training.py",
        ("return weight - rate * velocity", "return weight - 2 * rate * velocity"),
        "the optimiser moves conv1/weight 2 times as far as its rate says",
    ),
    "a decay inverted": (
        "tinycnn",
        "training.py",
        ("slope + rule.weight_decay * weight", "slope - rule.weight_decay * weight"),
        "weight decay is -0.0001 where 0.0001 is asked",
    ),
    "a ReLU that is skipped": (
        "tinycnn",
        "lowering.py",
        ("jax.nn.relu(x)", "x"),
        "the gradient of fc/",
    ),
    "dropout off": (
        "dropping",
        "training.py",
        ("jax.random.split(state.key) if has_dropout else (state.key, None)", "state.key, None"),
        "drops 0 of",
    ),
    "one mask for all steps": (
        "dropping",
        "training.py",
        ("moved, count, key, state.scale)", "moved, count, state.key, state.scale)"),
        "drops the same values at every step",
    ),
}
