"""What is said of checkpoints against events whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.store.events.rank_streams import Stream
from harness.verdicts import checkpoints

MS = 1_000_000


def stream(*, drain_ms: int = 0, slowed_ms: int = 10, every: int = 10, within: bool = False) -> Any:
    """Give 40 steps of 10 ms with a checkpoint of 30 ms after every tenth."""
    now, begun, lasted, saves = 0, [], [], []
    busy_until = 0
    for step in range(1, 41):
        length = (slowed_ms if now < busy_until else 10) * MS
        begun.append(now)
        lasted.append(length)
        now += length
        if step % every == 0:
            start, now = now, now + 30 * MS
            busy_until = now + drain_ms * MS
            if within:
                start = begun[-1]
                lasted[-1] = now - start
            told = {"saver": "torch.save", "bytes": 3_000_000, "phase": "measure", "step": step}
            saves.append({"event": "checkpoint", "start": start, "end": now, **told})
            for state, t in (("saved", now), ("durable", busy_until)):
                saves.append({"event": "checkpoint-state", "step": step, "state": state, "t": t})
    saves.append(
        {"event": "restored", "start": 0, "end": 20 * MS, "bytes": 3_100_000, "cache": "cold"}
    )
    return _stream(begun, lasted, saves)


def _stream(begun: list[int], lasted: list[int], saves: Sequence[Mapping[str, Any]]) -> Stream:
    return Stream(
        rank=0,
        steps=np.ones(len(begun), dtype=np.int64),
        start_ns=np.array(begun, dtype=np.int64),
        elapsed_ns=np.array(lasted, dtype=np.int64),
        warm_up_ns=np.array([], dtype=np.int64),
        units={"images": 16.0},
        versions={},
        facts={},
        saves=tuple(saves),
    )


def test_times_count_from_the_moment_a_checkpoint_begins() -> None:
    told = checkpoints.judge_checkpoints(stream(drain_ms=50), 0)
    assert told is not None
    assert (told.blocking_s, told.saved_s, told.durable_s) == pytest.approx((0.03, 0.03, 0.08))
    assert (told.restore_s, told.restore_cache, told.count) == (0.02, "cold", 4)


def test_the_proof_after_the_last_checkpoint_is_not_taken_for_it() -> None:
    made = stream(drain_ms=50, every=40)
    proof = [
        {"event": "checkpoint-state", "step": 40, "state": state, "t": 9_000 * MS}
        for state in ("saved", "durable")
    ]
    told = checkpoints.judge_checkpoints(replace(made, saves=(*made.saves, *proof)), 0)
    assert told is not None
    assert (told.saved_s, told.durable_s) == pytest.approx((0.03, 0.08))


def test_standing_still_costs_rate_where_it_lies_between_windows() -> None:
    assert checkpoints.blocked_ns(stream(), 0) == 4 * 30 * MS
    assert checkpoints.blocked_ns(stream(), 15) == 3 * 30 * MS
    assert checkpoints.blocked_ns(stream(within=True), 0) == 0
    told = checkpoints.judge_checkpoints(stream(), 0)
    assert told is not None
    assert told.blocked_share == pytest.approx(120 / 520)


def test_steps_during_a_drain_are_held_against_those_without_one() -> None:
    told = checkpoints.judge_checkpoints(stream(drain_ms=50, slowed_ms=13), 0)
    assert told is not None
    assert told.inflation == pytest.approx(1.3)


@pytest.mark.parametrize("drain_ms", [0, 10_000], ids=["never draining", "always draining"])
def test_without_steps_of_both_kinds_nothing_is_said(drain_ms: int) -> None:
    only_measured = stream(drain_ms=drain_ms)
    told = checkpoints.judge_checkpoints(only_measured, 10 if drain_ms else 0)
    assert told is not None
    assert told.inflation is None


def test_a_trial_without_checkpoints_has_none() -> None:
    assert checkpoints.judge_checkpoints(_stream([0], [MS], []), 0) is None


def test_a_checkpoint_that_never_became_durable_has_no_time_for_it() -> None:
    whole = stream()
    some = [event for event in whole.saves if event.get("state") != "durable"]
    told = checkpoints.judge_checkpoints(_stream([0], [MS], some), 0)
    assert told is not None
    assert told.durable_s is None
