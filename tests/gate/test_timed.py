"""Hold the timed half of the gate to seeing what is wrong in the timed form alone.

A payload gets a mistake in every layer that has a constant; each is named, and nothing else is.
"""

from __future__ import annotations

import pytest

from tests.gate import normed
from tests.gate.conftest import Subject

pytestmark = pytest.mark.framework

ADAPTERS = "harness/worker/adapters/"
TENSORFLOW = ADAPTERS + "tensorflow/lowering/layers.py"
NORMS = ADAPTERS + "tensorflow/lowering/norms.py"
PADDING = ADAPTERS + "tensorflow/lowering/padding.py"
KERAS = ADAPTERS + "keras/layers.py"
JAX = ADAPTERS + "jax/lowering/network.py"
TORCH = ADAPTERS + "torch/"
TINYGRAD = ADAPTERS + "tinygrad/lowering.py"

FAINT = "norm: output, of channels whose variance is as small as epsilon, is "
LOUD = "local: output, of samples whose squares weigh beside k, is "
BELOW = "leaky: output, of samples below zero, is "

UNCORRECTED = (
    "if len(shape) != 4 else y, now_mean, now_variance"
    " - (now_variance - (1 - layer.momentum) * variance) / 64"
)
"""64 values stand behind each variance."""

MISTAKES = {
    "tensorflow, constants": (
        Subject(
            "tensorflow",
            {
                NORMS: (
                    ('"epsilon": layer.epsilon', '"epsilon": 4 * layer.epsilon'),
                    ("(is_near * layer.alpha)", "(is_near * layer.alpha / layer.size)"),
                ),
                TENSORFLOW: (
                    ("tf.nn.leaky_relu(x, slope)", "tf.nn.leaky_relu(x, 2 * slope)"),
                    ('NEVER_LARGEST = float("-inf")', "NEVER_LARGEST = 0.0"),
                ),
                PADDING: ("if pads == tuple(same(", "if pads or tuple(same("),
            },
        ),
        "bf16",
        {"conv": "conv: output is", "norm": FAINT, "leaky": BELOW, "local": LOUD, "pool": "pool: "},
    ),
    "tensorflow, the fused norm's running variance": (
        Subject(
            "tensorflow",
            {
                NORMS: (
                    "if len(shape) != 4 else y, now_mean, now_variance",
                    UNCORRECTED,
                )
            },
        ),
        "fp32",
        {"norm": "norm: running variance is "},
    ),
    "keras, its own epsilon": (
        Subject("keras", {KERAS: ("epsilon=layer.epsilon", "epsilon=1e-3")}),
        "bf16",
        {"norm": FAINT},
    ),
    "keras, the complement of momentum": (
        Subject("keras", {KERAS: ("momentum=1 - layer.momentum", "momentum=layer.momentum")}),
        "fp32",
        {"norm": "norm: running mean is "},
    ),
    "jax, constants": (
        Subject(
            "jax",
            {
                JAX: (
                    ("variance + layer.epsilon", "variance + 4 * layer.epsilon"),
                    ("x * site.layer.slope", "x * 2 * site.layer.slope"),
                    ("layer.k + layer.alpha * total", "layer.k + layer.alpha / 5 * total"),
                )
            },
        ),
        "bf16",
        {"norm": FAINT, "leaky": BELOW, "local": LOUD},
    ),
    "torch, constants": (
        Subject(
            "torch",
            {
                TORCH + "lowering/network.py": (
                    ("eps=layer.epsilon", "eps=4 * layer.epsilon"),
                    ("nn.LeakyReLU(layer.slope", "nn.LeakyReLU(2 * layer.slope"),
                ),
                TORCH + "lowering/lrn.py": ("root * root.sqrt()", "root * root"),
            },
        ),
        "bf16",
        {"norm": FAINT, "leaky": BELOW, "local": LOUD},
    ),
    "tinygrad, constants": (
        Subject(
            "tinygrad",
            {
                TINYGRAD: (
                    ("(variance + layer.epsilon)", "(variance + 4 * layer.epsilon)"),
                    ("variance * (count / (count - 1))", "variance"),
                    ("half = layer.size // 2", "half = layer.size // 2 + 1"),
                )
            },
        ),
        "fp32",
        {"norm": "norm: output", "local": "local: output"},
    ),
}


@pytest.mark.planted
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_the_timed_form_are_named_layer_by_layer(
    mistake, timed_layers, planted
) -> None:
    subject, precision, expected = MISTAKES[mistake]
    found = timed_layers(subject, precision, normed)
    named = "; ".join(found[path] for path in sorted(found)) or None
    planted(subject.name, mistake.partition(", ")[2], "the gate as timed", named)
    assert set(found) == set(expected)
    for path, words in expected.items():
        assert found[path].startswith(words)


@pytest.mark.parametrize("name", ["tensorflow", "keras"])
def test_a_right_lowering_passes_where_constants_tell_in_bf16(name, timed) -> None:
    finding = timed(Subject(name), "bf16", normed)
    assert finding.differs is None
    assert finding.named == (name == "keras")
