"""Faults planted in JAX's timed step."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault, counted, known

FOLDER = "harness/worker/adapters/jax/"
OURS = "self.trained, self._loss = self._step(self.trained, self._given)"
SLOPES = "net, workload, precision, state, given, draw, count=accumulate"
ROW = "                x = self._layer(self.sites[path], x, one)\n"
DUE = f"""{OURS}
        except self._jax.errors.JaxRuntimeError as error:
            raise told(error) from error

    def sync(self) -> None:
        \"\"\"Wait for the last step.\"\"\"
        try:
"""
LATE = f"""{DUE.replace(OURS, "self.due = True")}            if self.__dict__.pop("due", False):
                {OURS}
"""
FAULTS: dict[str, Fault] = {
    **known(
        {
            "the last step before a sync alone": ("adapter.py", (DUE, LATE)),
            "every second step skipped": ("adapter.py", (OURS, counted("self.taken % 2", OURS))),
            "the first eight samples": (
                "training.py",
                (SLOPES, SLOPES.replace("given,", "Given(given.input[:8], given.target[:8]),")),
            ),
            "a convolution that is skipped": (
                "lowering/network.py",
                (ROW, ROW.replace("= ", "= x if path == 'block/conv2' else ")),
            ),
            "a running variance without Bessel's correction": (
                "lowering/network.py",
                ("variance * (count / (count - 1))", "variance"),
            ),
            "no update": (
                "training.py",
                ("return weight - rate * velocity, (velocity,)", "return weight, (velocity,)"),
            ),
            "momentum lost": (
                "training.py",
                ("velocity = rule.momentum * old[0] + slope", "velocity = slope"),
            ),
            "a rate doubled": (
                "training.py",
                ("return weight - rate * velocity", "return weight - 2 * rate * velocity"),
            ),
            "a decay inverted": (
                "training.py",
                ("slope + rule.weight_decay * weight", "slope - rule.weight_decay * weight"),
            ),
            "a ReLU that is skipped": ("lowering/network.py", ("jax.nn.relu(x)", "x")),
            "one mask for all steps": (
                "training.py",
                ("moved, count, key, state.scale)", "moved, count, state.key, state.scale)"),
            ),
        }
    ),
    "a step that does nothing": ("tinycnn", "adapter.py", (OURS, "self._loss = 0.0"), "nothing"),
    "dropout off": (
        "dropping",
        "training.py",
        ("jax.random.split(state.key) if has_dropout else (state.key, None)", "state.key, None"),
        "drops 0 of",
    ),
}
