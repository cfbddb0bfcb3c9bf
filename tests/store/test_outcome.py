"""An outcome is written whole, read back as it was, and refused where it holds none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import DamagedFile, RunError
from harness.store.layout import TrialPaths
from harness.store.outcome import (
    VERSION,
    Ended,
    MemoryEvidence,
    RankEnd,
    read_outcome,
    write_outcome,
)
from tests.outcomes import ended, record

EXCHANGES = {"n1": {"own": False, "exchanges": [[1, 2, 3, 4]]}}


@pytest.fixture
def trial(tmp_path: Path) -> TrialPaths:
    return TrialPaths(tmp_path / "abc" / "trial-1")


def change(trial: TrialPaths, **changes: Any) -> None:
    record(trial)
    raw = {**json.loads(trial.outcome.read_bytes()), **changes}
    trial.outcome.write_text(json.dumps({key: raw[key] for key in raw if raw[key] != "gone"}))


@pytest.mark.parametrize("how", Ended)
def test_what_was_written_is_read_back(trial: TrialPaths, how: Ended) -> None:
    told = ended(
        how,
        reason="why",
        marks=("a mark",),
        ranks=(RankEnd(0, "n1", pid=7, signal=9, cpu_s=1.5, max_rss_bytes=2**20, started_ns=5),),
        memory=MemoryEvidence("cgroup v2", 2**30, 2**29, 1),
        leftovers=1,
        survivors=0,
        clocks=EXCHANGES,
    )
    trial.root.mkdir(parents=True)
    write_outcome(told, trial)
    assert read_outcome(trial) == told


def test_the_file_says_how_it_ended_in_one_word_and_with_its_version(trial: TrialPaths) -> None:
    record(trial, "node-lost", reason="n1 is gone")
    raw = json.loads(trial.outcome.read_bytes())
    assert (raw["version"], raw["outcome"]) == (VERSION, "node-lost")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"version": "gone"}, "version is not a whole number"),
        ({"ranks": "gone"}, "ranks is missing"),
        ({"position": "first"}, "position is not a whole number"),
        ({"marks": "loud"}, "marks is not a list"),
        (
            {"outcome": "exploded"},
            "outcome: 'exploded' is not known (known: ok, failed, timed-out, ",
        ),
        ({"ranks": [{"host": "n1"}]}, "ranks[0].rank is missing"),
        ({"ranks": [7]}, "ranks[0] is not an object"),
        ({"memory": {"how": "none"}}, "memory.limit_bytes is missing"),
        ({"memory": "much"}, "memory is not an object"),
        ({"clocks": [1]}, "clocks is not an object"),
    ],
)
def test_a_file_that_holds_no_outcome_is_named_with_what_is_wrong(
    trial: TrialPaths, changes: dict[str, Any], what: str
) -> None:
    change(trial, **changes)
    with pytest.raises(DamagedFile) as told:
        read_outcome(trial)
    message = str(told.value)
    assert message.startswith(f"{trial.outcome} is damaged: ")
    assert what in message
    assert "\n" not in message


def test_another_format_is_refused_and_not_called_damaged(trial: TrialPaths) -> None:
    change(trial, version=99)
    with pytest.raises(RunError, match=r"outcome\.json has version 99; this bakeoff reads") as told:
        read_outcome(trial)
    assert not isinstance(told.value, DamagedFile)


def test_a_reason_with_half_a_letter_is_as_it_was_written(trial: TrialPaths) -> None:
    trial.root.mkdir(parents=True)
    write_outcome(ended("failed", reason="no file \udcff\ud800"), trial)
    assert read_outcome(trial).reason.startswith("no file ")
