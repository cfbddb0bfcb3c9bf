"""Hold lanes to working side by side, and to costing no more than what one had to do."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from harness.errors import UsageError
from harness.gate.processes import side_by_side
from harness.machine import share

Say = Callable[[object], None]


def who(groups: Iterator[str], say: Say) -> None:
    for group in groups:
        say((group, os.getpid()))


def dying(groups: Iterator[str], say: Say) -> None:
    for group in groups:
        if group == "bad":
            os._exit(7)
        say(group)


def refusing(groups: Iterator[str], say: Say) -> None:
    raise UsageError(f"{next(groups)}: there is no such thing")


def pausing(groups: Iterator[str], say: Say) -> None:
    say(next(groups))
    signal.pause()


def test_each_lane_is_a_process_and_takes_group_after_group() -> None:
    told = list(side_by_side.heard(who, ["a", "b", "c"], 2))
    groups, processes = zip(*told, strict=True)
    assert sorted(groups) == ["a", "b", "c"]
    assert len(set(processes)) == 2
    assert os.getpid() not in processes


def test_a_lane_that_dies_costs_its_own_group() -> None:
    assert sorted(side_by_side.heard(dying, ["bad", "a", "b"], 2)) == ["a", "b"]


def test_what_a_person_did_wrong_is_raised_here() -> None:
    with pytest.raises(UsageError, match="a: there is no such thing"):
        list(side_by_side.heard(refusing, ["a"], 1))


def test_a_signal_ends_all_lanes_and_this_process() -> None:
    heard = side_by_side.heard(pausing, ["a", "b"], 2)
    assert {next(heard), next(heard)} == {"a", "b"}
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SystemExit) as stop:
        next(heard)
    assert stop.value.code == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("cores", "quota", "free", "groups", "found"),
    [
        (2, None, None, 9, 1),
        (16, None, None, 9, 8),
        (16, None, None, 3, 3),
        (16, 4.0, None, 9, 2),
        (16, None, 13 << 30, 9, 2),
        (16, None, 1 << 30, 9, 1),
    ],
)
def test_lanes_are_as_many_as_cores_memory_and_work_allow(
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    quota: object,
    free: object,
    groups: int,
    found: int,
) -> None:
    for name, value in (("cpus", cores), ("cpu_quota", quota), ("free_memory_bytes", free)):
        monkeypatch.setattr(share, name, lambda value=value: value)
    assert side_by_side.lanes(groups) == found
