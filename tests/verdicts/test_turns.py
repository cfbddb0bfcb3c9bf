"""These tests hold that readings of a trial that took turns are those of its own turns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.analysis.evidence import Mark
from harness.analysis.timelines.phases import by_phase, in_turns
from harness.store.samples.recording import Recording, Series
from harness.store.samples.samples_format import Channel
from harness.verdicts.hardware_use import NodeUse, Span, power_w, readings

S = 1_000_000_000
STEP = S // 10
TURNS = (Span(1 * S, 2 * S), Span(5 * S, 6 * S), Span(9 * S, 10 * S))


def counter(scope: str, name: str, at_work: float, else_: float) -> Series:
    """Record a counter that grows so fast in the turns, and so fast between them."""
    times = np.arange(0, 12 * S, STEP, dtype=np.int64)
    inside = [any(one.start_ns <= t < one.end_ns for one in TURNS) for t in times]
    rates = np.where(inside, at_work, else_)
    grown = np.concatenate(([0.0], np.cumsum(rates[:-1] * STEP / S)))
    channel = Channel(name, "s", "counter", scope, scale=1e-6)
    return Series("made", channel, STEP, times, times, np.round(grown * 1e6).astype(np.int64))


def recorded(*series: Series) -> Recording:
    index = {(one.channel.scope, one.channel.name): one for one in series}
    return Recording({}, series, (), (), whole=True, index=index)


def use(*series: Series, turns: tuple[Span, ...] = TURNS) -> NodeUse:
    return NodeUse("here", recorded(*series), (0,), Span(0, 12 * S), turns)


def test_what_others_did_between_the_turns_is_not_counted() -> None:
    told = use(counter("rank:0", "rank.user", 0.75, 0.0))
    assert told.rate("rank:0", "rank.user") == pytest.approx(0.75, abs=1e-6)
    assert told.seconds == 3


def test_a_trial_that_ran_alone_is_read_from_begin_to_end() -> None:
    told = use(counter("rank:0", "rank.user", 0.8, 0.0), turns=())
    assert told.rate("rank:0", "rank.user") == pytest.approx(0.8 * 3 / 12, rel=0.05)


def seldom(meter: Series) -> Series:
    """Keep every tenth reading, as of what is read once a second and not where turns end."""
    some = slice(5, None, 10)
    times = meter.times_ns[some]
    return replace(meter, before_ns=times, after_ns=times, raw=meter.raw[some])


def averaged(meter: Series) -> Series:
    """Make it a gauge."""
    return replace(meter, channel=Channel("gpu.power.average", "W", "gauge", "rapl/package-0"))


def watts(meter: Series, turns: tuple[Span, ...]) -> list[float]:
    return [one.mean for one in readings([use(meter, turns=turns)]) if one.unit == "W"]


def test_power_by_turns_is_counted_where_a_counter_was_read_at_their_ends() -> None:
    meter = counter("rapl/package-0", "energy", 40.0, 90.0)
    assert power_w([use(meter)]) == pytest.approx(40.0, rel=1e-3)
    assert watts(meter, TURNS) == pytest.approx([40.0], rel=1e-3)
    assert power_w([use(seldom(meter))]) is None
    assert watts(seldom(meter), TURNS) == []
    assert power_w([use(seldom(meter), turns=())]) is not None


def test_power_that_a_meter_averages_needs_a_turn_of_ten_seconds() -> None:
    meter = averaged(counter("rapl/package-0", "energy", 40.0, 90.0))
    assert watts(meter, TURNS) == []
    assert watts(meter, ()) != []
    assert watts(meter, (*TURNS[:1], Span(1 * S, 11 * S))) != []


def test_a_timeline_names_turns_and_a_table_adds_them_up() -> None:
    names = ("warm-up", "wait", "settle", "measure", "wait", "settle", "disturbed", "measure")
    marks: list[Mark] = []
    for place, name in enumerate(names):
        marks.append(in_turns(Mark(name, place, place + 1.0), marks))
    assert [mark.name for mark in marks] == [
        *("warm-up", "stands still", "settles", "turn 1", "stands still", "settles"),
        *("disturbed turns", "turn 2"),
    ]
    recording = recorded(counter("rank:0", "rank.user", 0.5, 0.5))
    rows = list(by_phase("t", "here", recording, marks, 0))
    assert [(one.phase, one.seconds) for one in rows] == [
        *(("warm-up", 1), ("stands still", 2), ("settles", 2), ("measure", 2)),
        ("disturbed turns", 1),
    ]
