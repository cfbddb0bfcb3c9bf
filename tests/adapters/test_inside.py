"""Pass on what the checks that run beside each framework found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.interpreter import answers, checks

pytestmark = pytest.mark.framework
HERE = Path(__file__).parent
TOGETHER = (
    (
        "torch",
        (
            "torch/layers_inside.py",
            "torch/training_inside.py",
            "torch/hooks_inside.py",
            "torch/counted_inside.py",
            "torch/memory_inside.py",
            "torch/recomputed_inside.py",
            "torch/device_inside.py",
        ),
    ),
    ("tensorflow", ("tensorflow/layers_inside.py", "tensorflow/counted_inside.py")),
    ("tensorflow@1.15", ("tensorflow/layers_inside.py", "tensorflow/counted_inside.py")),
    ("keras", ("keras/layers_inside.py",)),
    ("jax", ("jax/layers_inside.py", "jax/memory_inside.py")),
    ("jax", ("jax/device_inside.py",)),  # with one thread, on which each instruction ends, too
    ("jax", ("jax/recomputed_inside.py",)),  # with switches of its own
)
"""Files whose checks one process makes: importing a framework takes longer than most of them."""


@pytest.mark.parametrize(
    ("environment", "files", "file", "name"),
    [
        pytest.param(where, files, file, name, id=f"{where}-{file}-{name}")
        for where, files in TOGETHER
        for file in files
        for name in checks(HERE / file)
    ],
)
def test_beside_the_framework(
    environment: str, files: tuple[str, ...], file: str, name: str
) -> None:
    found = answers(environment, *(HERE / one for one in files))
    answer = found[str(HERE / file)][name]
    assert answer is None, answer
