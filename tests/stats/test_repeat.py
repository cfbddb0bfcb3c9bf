"""These tests show when a study stops repeating, and that it says why."""

from __future__ import annotations

import pytest

from harness.stats.estimate import coverage
from harness.stats.repetition.repeat import Schedule, decide, schedule

NARROW = [100.0, 100.2, 100.1, 99.9, 100.05, 100.0, 100.1, 99.95]
WIDE = [100.0, 110.0, 90.0, 105.0, 95.0, 100.0, 102.0, 98.0]
DECLARED = Schedule((8, 12), 0.975)


@pytest.mark.parametrize(("first", "most"), [(6, 6), (6, 8), (6, 20), (3, 40), (10, 100)])
def test_every_look_could_speak_and_all_together_keep_the_level(first: int, most: int) -> None:
    declared = schedule(first, most)
    assert declared.looks[-1] == most
    assert list(declared.looks) == sorted(set(declared.looks))
    assert coverage(declared.looks[0], 1) >= declared.level
    assert (1 - declared.level) * len(declared.looks) == pytest.approx(0.05)


def test_a_study_stops_when_every_interval_is_narrow() -> None:
    told = decide({"a": NARROW, "b": NARROW}, width=0.02, plan=DECLARED, done=8)
    assert told.stop
    assert not told.wide


def test_one_wide_cell_keeps_a_study_going_to_the_next_look() -> None:
    told = decide({"a": NARROW, "b": WIDE}, width=0.02, plan=DECLARED, done=8)
    assert not told.stop
    assert told.next_look == 12
    assert told.wide == ("b",)


def test_nothing_is_decided_between_declared_looks() -> None:
    told = decide({"a": NARROW[:7]}, width=0.5, plan=DECLARED, done=7)
    assert not told.stop
    assert told.next_look == 8


def test_a_budget_that_ends_first_is_named() -> None:
    told = decide({"a": WIDE}, width=0.02, plan=DECLARED, done=9, blocks_left=0)
    assert told.stop
    assert "budget ended" in told.why


def test_the_last_look_stops_and_names_what_stayed_wide() -> None:
    told = decide({"a": WIDE * 2}, width=0.02, plan=Schedule((16,), 0.95), done=16)
    assert told.stop
    assert told.wide == ("a",)
    assert "1 cell is still wider" in told.why


def test_a_cell_that_never_gave_a_number_is_not_waited_for() -> None:
    assert decide({"a": NARROW, "b": []}, width=0.02, plan=DECLARED, done=8).stop
