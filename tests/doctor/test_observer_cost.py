"""Hold the on/off study to its arithmetic, and run a short one."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from harness.doctor.observer_cost import carry_out, keep, kept, latest, summarise


def test_a_known_slow_down_is_found_with_its_interval() -> None:
    logs = [math.log(1.02) + error for error in (-0.001, 0.001, 0.0, 0.002, -0.002)]
    study = summarise(logs, logs, slice_s=2.0, share=0.004)
    assert study.slow_down == pytest.approx(1 - 1 / 1.02)
    assert study.low < study.slow_down < study.high
    assert study.more_pairs is None


def test_too_wide_an_interval_asks_for_more_pairs() -> None:
    study = summarise([0.1, -0.1, 0.1, -0.1], [0.0, 0.1], slice_s=2.0, share=None)
    assert study.more_pairs is not None
    assert study.more_pairs > 4


def test_the_latest_study_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert latest() is None
    study = summarise([0.01, 0.02], [0.01, 0.02], slice_s=2.0, share=None)
    keep(study)
    told = latest()
    assert told is not None
    assert told["slow_down"] == study.slow_down
    assert "logs" not in told
    assert kept() == study


def test_a_short_study_ends_with_a_number_and_the_collectors_own_share() -> None:
    study = carry_out(6, slice_s=0.2)
    assert study.pairs == 6
    assert study.low <= study.slow_down <= study.high
    assert study.cpu_share is not None
    assert 0 < study.cpu_share < 0.1
    longer = carry_out(1, slice_s=0.1, before=study)
    assert longer.pairs == 7
    assert longer.logs[:6] == study.logs
