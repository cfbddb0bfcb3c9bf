"""Record with a made-up distribution's sources among ours: bad ones cost only themselves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.collect.observing import observe
from tests.plugins.conftest import Install

OPEN = "def open(observed): raise AssertionError('not reached')\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("HZ = 1.0\n" + OPEN, "extra.meter has no constant BLOCKS"),
        ("BLOCKS = False\n" + OPEN, "extra.meter has no constant HZ"),
        ("HZ = 1.0\nBLOCKS = False\n", "extra.meter has no function open"),
        (
            "HZ = 'often'\nBLOCKS = False\n" + OPEN,
            "ValueError: could not convert string to float: 'often'",
        ),
    ],
)
def test_a_source_that_is_none_is_recorded_with_its_reason_and_blinds_no_other(
    install: Install, tmp_path: Path, text: str, reason: str
) -> None:
    install("extra", group="samplers", meter__dot__py=text)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    recording, told = observe(
        tmp_path / "samples.bin", 0.0, environment=environment, first=("node", "memory.free")
    )
    assert told["problem"] is None
    assert {one["source"]: one["reason"] for one in recording.noted("unavailable")}[
        "meter"
    ] == reason
