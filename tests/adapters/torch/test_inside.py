"""This file passes on what the checks that run beside torch found."""

from __future__ import annotations

import pytest

from tests.adapters.torch.interpreter import answers, checks

pytestmark = pytest.mark.framework
FILES = ("layers_inside.py", "training_inside.py")


@pytest.mark.parametrize(
    ("file", "name"), [(file, name) for file in FILES for name in checks(file)]
)
def test_beside_torch(file: str, name: str) -> None:
    assert answers(file)[name] is None, answers(file)[name]
