"""Take checkpoints with two ranks of torch, which train on while one is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.worker.job import Span
from tests.adapters.interpreter import events_of, told
from tests.adapters.two_ranks import run_two

pytestmark = pytest.mark.framework


@pytest.mark.parametrize("saver", ["save", "distributed-async"])
def test_two_ranks_save_and_restore_together(saver: str, tmp_path: Path) -> None:
    ended = run_two(
        "torch",
        tmp_path,
        strategy="ddp",
        factors={"checkpoint_every": 10, "ranks_per_node": 2, "batch": 4, "threads": 1},
        options={"saver": saver},
        warmup=Span(steps=5),
        until=Span(steps=20),
        paths={"checkpoint_to": f"{tmp_path}/slow", "checkpoint_through": f"{tmp_path}/fast"},
    )
    assert ended == [0, 0]
    for number, is_same in ((0, True), (1, None)):  # the first rank's state is the one that is kept
        proof = told(events_of(tmp_path, number), "restored")
        assert (proof["step"], proof["files_true"], proof["state_true"]) == (25, True, is_same)
