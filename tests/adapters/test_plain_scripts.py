"""Each adapter's step of GPT-2 computes what a plain script of its framework computes.

Their times are compared by hand (``python -m tests.bench.pairs``): on a machine in use none is due.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.bench.pairs.__main__ import inside
from tests.needs import framework

pytestmark = pytest.mark.framework


@pytest.mark.parametrize(
    ("name", "factors"),
    [
        ("torch", {}),
        pytest.param("torch", {"compile": True}, marks=pytest.mark.slow),
        ("jax", {}),
        ("keras", {}),
    ],
    ids=str,
)
def test_a_step_of_tinygpt_is_what_a_plain_script_computes(
    name: str, factors: dict[str, Any]
) -> None:
    framework(name)
    both = inside(name, "tinygpt", 4, json.dumps(factors), 0, 0)
    assert both["shared"] > 0
    assert [one for one in both["only"] if not one[-1]] == []
