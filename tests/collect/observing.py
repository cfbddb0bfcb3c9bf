"""This file runs a collector in a process of its own, as agents do, and reads what it recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.store.recording import Recording, read_recording

SCRIPT = """
import json, os, sys, time
from pathlib import Path
from harness.collect.collector import Collector
from harness.collect.sampler import Observed
asked = json.loads(sys.argv[1])
ranks = {int(rank): pid for rank, pid in asked["ranks"].items()}
devices = {int(rank): told for rank, told in asked["devices"].items()}
collector = Collector()
path = Path(asked["path"])
collector.begin(path, Observed(ranks=ranks, devices=devices, directory=path.parent), asked["rates"])
time.sleep(asked["seconds"])
print(json.dumps(vars(collector.end())))
"""


def observe(
    path: Path,
    seconds: float,
    *,
    ranks: Mapping[int, int] | None = None,
    devices: Mapping[int, str | None] | None = None,
    rates: Mapping[str, float] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Recording, dict[str, Any]]:
    """Record for some seconds; give what was recorded and what the collector said at its end."""
    asked = {
        "path": str(path),
        "seconds": seconds,
        "ranks": ranks or {},
        "devices": devices or {},
        "rates": rates or {},
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(asked)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    recording = read_recording(path)
    assert recording is not None
    return recording, json.loads(done.stdout)


def whole_span(recording: Recording, names: Sequence[str]) -> tuple[int, int]:
    """Give the time in which all of these channels were read."""
    times = [one.times_ns for one in recording.series if one.channel.name in names and len(one.raw)]
    return max(int(one[0]) for one in times), min(int(one[-1]) for one in times)
