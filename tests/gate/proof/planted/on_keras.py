"""Faults planted in Keras' timed step."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault, known
from tests.gate.proof.planted.on_tensorflow import OF_THE_ACTIVITY

FOLDER = "harness/worker/adapters/keras/"
GRADIENTS = "self._gradients(self.model, x, target)"
EACH = """            weights = list(self.learned.values())
            self.optimiser.apply(self.forces(list(gradients.values()), weights), self.variables)
"""
SOME = """            weights = list(self.learned.values())
            forces = self.forces(list(gradients.values()), weights)
            moved = [place for place, name in enumerate(self.names) if name != "fc/weight"]
            some = [self.variables[place] for place in moved]
            self.optimiser.apply([forces[place] for place in moved], some)
"""
SAME_MASK = (
    "[layers.Lambda(lambda x: __import__('tensorflow').nn.experimental"
    ".stateless_dropout(x, spot.layer.rate, (1, 2)))]"
)
STILL = {"changes nothing": "no weight moves"}
"""What Keras keeps of a velocity is rounded on its way in and out."""
SGD = "keras.optimizers.SGD(rate, momentum=numpy.float64(rule.momentum))"
SKIPPED = """        if spot.path == "block/conv2":
            convolution.call = lambda x: x + 0 * ops.sum(convolution.kernel)
"""


def sampled(how: str) -> tuple[str, str]:
    """Train on a part of the batch."""
    return GRADIENTS, GRADIENTS.replace("x, target", how)


FAULTS: dict[str, Fault] = {
    **{
        fault: (network, f"../tensorflow/{file}", change, STILL.get(words, words))
        for fault, (network, file, change, words) in OF_THE_ACTIVITY.items()
    },
    **known(
        {
            "no update": ("on_tensorflow.py", ("self.optimiser.apply(", "(lambda *_: None)(")),
            "half the batch": ("on_tensorflow.py", sampled("x[::2], target[::2]")),
            "the first eight samples": ("on_tensorflow.py", sampled("x[:8], target[:8]")),
            "a convolution that is skipped": (
                "layers.py",
                ("        return [convolution]\n", f"{SKIPPED}        return [convolution]\n"),
            ),
            "labels that are all 0": ("on_tensorflow.py", sampled("x, 0 * target")),
            "a summed loss": ("on_tensorflow.py", ("goal = loss", "goal = 16 * loss")),
            "a frozen layer": ("on_tensorflow.py", (EACH, SOME)),
            "a ReLU that is skipped": (
                "layers.py",
                ("[layers.ReLU()]", '[layers.Activation("linear")]'),
            ),
            "another momentum": ("training.py", (SGD, SGD.replace("rule.momentum", "0.8"))),
            "a momentum that looks ahead": (
                "training.py",
                (SGD, SGD.replace("rate, ", "rate, nesterov=True, ")),
            ),
            "a rate doubled": ("training.py", (SGD, SGD.replace("rate, ", "2 * rate, "))),
            "a decay inverted": (
                "training.py",
                ("gradient + self._decay", "gradient - self._decay"),
            ),
            "no decay": ("training.py", ("if self._decay and name in self._decayed", "if False")),
            "dropout off": (
                "adapter.py",
                (
                    "KerasLowering(workload.network, is_dropping=True, ",
                    "KerasLowering(workload.network, is_dropping=False, ",
                ),
            ),
            "one mask for all steps": (
                "layers.py",
                (
                    "[layers.Dropout(spot.layer.rate)]",
                    SAME_MASK,
                ),
            ),
        }
    ),
    "inference instead of training": (
        "tinycnn",
        "on_tensorflow.py",
        ("model(x, training=True)", "model(x, training=False)"),
        "the gradient of",
    ),
    "inference where it drops": (
        "dropping",
        "on_tensorflow.py",
        ("model(x, training=True)", "model(x, training=False)"),
        "drop3 drops 0 of",
    ),
    "momentum lost": (
        "tinycnn",
        "training.py",
        (SGD, "keras.optimizers.SGD(rate)"),
        "the optimiser keeps no velocity",
    ),
    "Keras' own decay": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("rate, ", "rate, weight_decay=0.01, ")),
        "does not move as the optimiser's rule says",
    ),
    "a running mean that moves too slowly": (
        "tinycnn",
        "layers.py",
        ("momentum=1 - layer.momentum", "momentum=1 - layer.momentum / 2"),
        "of its change off",
    ),
}
