"""Run a collector in a process of its own, as agents do, and read what it recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.store.samples.follow_samples import CurrentReading, Follower
from harness.store.samples.recording import Recording, read_recording
from tests.collect.growth import Growth

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
print("begun", flush=True)
sys.stdin.readline()
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
    first: tuple[str, str] = ("observer", "observer.resident"),
) -> tuple[Recording, dict[str, Any]]:
    """Record for some seconds from when ``first`` is read; give that and what was said at the end.

    How long sources take to open is the machine's business.
    """
    asked = {
        "path": str(path),
        "seconds": seconds,
        "ranks": ranks or {},
        "devices": devices or {},
        "rates": rates or {},
    }
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, json.dumps(asked)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as collector:
        assert collector.stdout is not None
        assert collector.stdout.readline() == "begun\n"
        wait_for(path, first)
        told, complaints = collector.communicate("end\n")
    assert complaints == ""
    recording = read_recording(path)
    assert recording is not None
    return recording, json.loads(told)


def wait_for(path: Path, channel: tuple[str, str]) -> CurrentReading:
    """Wait until a channel was read into a file that is there already; give that reading."""
    follower = Follower(path)
    with Growth(path) as growth:
        while channel not in (seen := follower.look()):
            growth.wait()
    return seen[channel]


def whole_span(recording: Recording, names: Sequence[str]) -> tuple[int, int]:
    """Give the time in which all of these channels were read."""
    times = [one.times_ns for one in recording.series if one.channel.name in names and len(one.raw)]
    return max(int(one[0]) for one in times), min(int(one[-1]) for one in times)
