"""This file passes on what the checks that run beside TensorFlow, new and old, found."""

from __future__ import annotations

import pytest

from tests.adapters.tensorflow.interpreter import HERE, answers, checks

pytestmark = pytest.mark.framework
FILE = HERE / "layers_inside.py"


@pytest.mark.parametrize("environment", ["tensorflow", "tensorflow@1.15"])
@pytest.mark.parametrize("name", checks(FILE))
def test_beside_tensorflow(environment: str, name: str) -> None:
    found = answers(environment, FILE)
    assert found[name] is None, found[name]
