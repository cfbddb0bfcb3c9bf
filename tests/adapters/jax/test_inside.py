"""This file passes on what the checks that run beside JAX found."""

from __future__ import annotations

import pytest

from tests.adapters.jax.interpreter import answers, checks

pytestmark = pytest.mark.framework
FILES = ("layers_inside.py",)


@pytest.mark.parametrize(
    ("file", "name"), [(file, name) for file in FILES for name in checks(file)]
)
def test_beside_jax(file: str, name: str) -> None:
    assert answers(file)[name] is None, answers(file)[name]
