"""Pass on what the checks that run beside each framework found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.interpreter import answers, checks

pytestmark = pytest.mark.framework
HERE = Path(__file__).parent
FILES = (
    ("torch", "torch/layers_inside.py"),
    ("torch", "torch/training_inside.py"),
    ("torch", "torch/hooks_inside.py"),
    ("torch", "torch/counted_inside.py"),
    ("torch", "torch/memory_inside.py"),
    ("torch", "torch/recomputed_inside.py"),
    ("tensorflow", "tensorflow/layers_inside.py"),
    ("tensorflow@1.15", "tensorflow/layers_inside.py"),
    ("tensorflow", "tensorflow/counted_inside.py"),
    ("tensorflow@1.15", "tensorflow/counted_inside.py"),
    ("keras", "keras/layers_inside.py"),
    ("jax", "jax/layers_inside.py"),
    ("jax", "jax/memory_inside.py"),
    ("jax", "jax/recomputed_inside.py"),
)


@pytest.mark.parametrize(
    ("environment", "file", "name"),
    [(where, file, name) for where, file in FILES for name in checks(HERE / file)],
)
def test_beside_the_framework(environment: str, file: str, name: str) -> None:
    found = answers(environment, HERE / file)
    assert found[name] is None, found[name]
