"""Steps of two ranks are divided, and what they exchange is told from what they compute."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.interpreter import events_of, told
from tests.adapters.two_ranks import run_two

pytestmark = pytest.mark.framework

WAYS = [
    ("torch", "ddp", True),
    ("torch", "ddp", False),
    ("jax", "data-parallel", True),
]


@pytest.mark.parametrize(("framework", "strategy", "communicates"), WAYS)
def test_the_first_of_two_ranks_says_what_exchange_takes(
    framework: str, strategy: str, communicates: bool, tmp_path: Path
) -> None:
    ended = run_two(
        framework,
        tmp_path,
        purpose="attribute",
        strategy=strategy,
        factors={"batch": 16, "ranks_per_node": 2, "threads": 1, "communicate": communicates},
    )
    assert ended == [0, 0], (tmp_path / "printed.0").read_text("utf-8")
    first, second = (events_of(tmp_path, number) for number in range(2))
    assert told(second, "finished")
    assert not [one for one in second if one["event"] in ("attribution", "part")]
    parts = {(one["site"], one["phase"]): one for one in first if one["event"] == "part"}
    assert all(parts["conv1", phase] for phase in ("forward", "backward"))
    assert (("", "exchange") in parts) == communicates
    if communicates:
        assert sum(parts["", "exchange"]["shares"]) > 0
        assert parts["", "exchange"]["operations"]
