"""Read a known load back: what the collector says is what the load says of itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.collect.collector import Collector
from harness.collect.sampler import Observed
from harness.store.samples.recording import read_recording
from harness.verdicts.hardware_use import NodeUse, Span
from tests.collect.observing import wait_for

LOAD = Path(__file__).with_name("load.py")
TOLERANCE = 0.03


def test_a_known_load_is_read_back_within_three_percent(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, str(LOAD), str(tmp_path), "4"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    collector = Collector()
    collector.begin(tmp_path / "s.bin", Observed({0: process.pid}, directory=tmp_path), {})
    wait_for(tmp_path / "s.bin", ("rank:0", "rank.user"))
    process.stdin.write("begin\n")
    process.stdin.flush()
    first, last = (json.loads(process.stdout.readline()) for _ in range(2))
    collector.end()
    process.communicate()
    recording = read_recording(tmp_path / "s.bin")
    assert recording is not None
    use = NodeUse("here", recording, (0,), Span(first["t"], last["t"]))
    seconds = use.steady.seconds
    cores = (last["cpu_s"] - first["cpu_s"]) / seconds
    assert use.total("rank:0", ("rank.user", "rank.system")) == pytest.approx(cores, rel=TOLERANCE)
    written = (last["written"] - first["written"]) / seconds
    assert use.rate("rank:0", "rank.written") == pytest.approx(written, rel=TOLERANCE)
    assert use.rate("rank:0", "rank.resident") == pytest.approx(2**30, rel=TOLERANCE)
