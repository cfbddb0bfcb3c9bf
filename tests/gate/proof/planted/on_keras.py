"""Faults planted in Keras' timed step."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault
from tests.gate.proof.planted.on_tensorflow import OF_THE_ACTIVITY

FOLDER = "harness/worker/adapters/keras/"
GRADIENTS = "self._gradients(self.lowering.model, x, target)"
EACH = """                for name, gradient in gradients.items()
            ],
            self._variables,
"""
SOME = """                for name, gradient in gradients.items()
                if name != "fc/weight"
            ],
            [one for name, one in zip(self.learned, self._variables) if name != "fc/weight"],
"""
SAME_MASK = (
    "[layers.Lambda(lambda x: __import__('tensorflow').nn.experimental"
    ".stateless_dropout(x, spot.layer.rate, (1, 2)))]"
)
STILL = {"changes nothing": "no weight moves"}
"""What Keras keeps of a velocity is rounded on its way in and out."""
SGD = "keras.optimizers.SGD(rate, momentum=numpy.float64(rule.momentum))"


def sampled(how: str) -> tuple[str, str]:
    """Train on a part of the batch."""
    return GRADIENTS, GRADIENTS.replace("x, target", how)


FAULTS: dict[str, Fault] = {
    **{
        fault: (network, f"../tensorflow/{file}", change, STILL.get(words, words))
        for fault, (network, file, change, words) in OF_THE_ACTIVITY.items()
    },
    "no update": (
        "tinycnn",
        "training.py",
        ("self._optimiser.apply(", "(lambda *_: None)("),
        "no weight moves",
    ),
    "half the batch": (
        "tinycnn",
        "training.py",
        sampled("x[::2], target[::2]"),
        "the gradient of fc/",
    ),
    "the first eight samples": (
        "tinycnn",
        "training.py",
        sampled("x[:8], target[:8]"),
        "the gradient of fc/",
    ),
    "labels that are all 0": (
        "tinycnn",
        "training.py",
        sampled("x, 0 * target"),
        "the gradient of fc/",
    ),
    "a summed loss": (
        "tinycnn",
        "training.py",
        ("goal = loss", "goal = 16 * loss"),
        "the gradient of fc/bias is 16 times what it should be",
    ),
    "a frozen layer": ("tinycnn", "training.py", (EACH, SOME), "fc/weight is not trained"),
    "a ReLU that is skipped": (
        "tinycnn",
        "layers.py",
        ("[layers.ReLU()]", '[layers.Activation("linear")]'),
        "the gradient of fc/",
    ),
    "inference instead of training": (
        "tinycnn",
        "training.py",
        ("model(x, training=True)", "model(x, training=False)"),
        "the gradient of",
    ),
    "inference where it drops": (
        "dropping",
        "training.py",
        ("model(x, training=True)", "model(x, training=False)"),
        "drop3 drops 0 of",
    ),
    "momentum lost": (
        "tinycnn",
        "training.py",
        (SGD, "keras.optimizers.SGD(rate)"),
        "the optimiser keeps no velocity",
    ),
    "another momentum": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("rule.momentum", "0.8")),
        "momentum is 0.8 where 0.9 is asked",
    ),
    "a momentum that looks ahead": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("rate, ", "rate, nesterov=True, ")),
        "does not move as the optimiser's rule says",
    ),
    "a rate doubled": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("rate, ", "2 * rate, ")),
        "the optimiser moves conv1/weight 2 times as far as its rate says",
    ),
    "a decay inverted": (
        "tinycnn",
        "training.py",
        ("gradient + self._decay", "gradient - self._decay"),
        "weight decay is -0.0001 where 0.0001 is asked",
    ),
    "no decay": (
        "tinycnn",
        "training.py",
        ("if self._decay and name in self._decayed", "if False"),
        "weight decay is .* where 0.0001 is asked",
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
    "dropout off": (
        "dropping",
        "adapter.py",
        (
            "KerasLowering(workload.network, is_dropping=True)",
            "KerasLowering(workload.network, is_dropping=False)",
        ),
        "drop3 drops 0 of",
    ),
    "one mask for all steps": (
        "dropping",
        "layers.py",
        (
            "[layers.Dropout(spot.layer.rate)]",
            SAME_MASK,
        ),
        "drops the same values at every step",
    ),
}
