"""This file holds the recorder to its ticks, and a killed collector to what it had written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from harness.collect.collector import Collector
from harness.collect.recorder import Counts, Group, Lane, Recording
from harness.collect.sampler import Observed
from harness.store import samples
from harness.store.following import Follower
from harness.store.recording import read_recording
from harness.store.samples import Channel
from tests.collect.observing import observe, wait_for


class Sleepy:
    """A source whose readings take as long as they are told."""

    channels = (Channel("count", "1", "counter", "node"),)

    def __init__(self, *takes_s: float) -> None:
        self._takes_s = list(takes_s)
        self.readings = 0
        self.closed = False

    def read(self) -> list[int]:
        self.readings += 1
        if self._takes_s:
            time.sleep(self._takes_s.pop(0))
        return [self.readings]

    def close(self) -> None:
        self.closed = True


class Failing(Sleepy):
    def __init__(self, fault: Exception | None) -> None:
        super().__init__()
        self._fault = fault

    def read(self) -> list[int]:
        if self._fault is None:
            return [1, 2]
        raise self._fault


def recorded(path: Path, source: Sleepy, period_s: float, seconds: float) -> Counts:
    recording = Recording(path, node="here")
    counts = Counts()
    group = Group("sleepy", source, int(period_s * 1e9))
    lane = Lane("test", recording, counts, lambda: [group])
    lane.start()
    time.sleep(seconds)
    lane.stop()
    assert lane.ended()
    recording.close()
    return counts


def test_ticks_do_not_drift_whatever_a_reading_takes(tmp_path: Path) -> None:
    recorded(tmp_path / "s.bin", Sleepy(*[0.01] * 50), 0.05, 1.0)
    frames = [frame for frame, _ in samples.frames((tmp_path / "s.bin").read_bytes())]
    (group,) = (one for one in frames if isinstance(one, samples.Declared))
    taken = [one for one in frames if isinstance(one, samples.Sample)][:-1]
    late = [one.t_before - group.first_due_ns - one.tick * group.period_ns for one in taken]
    assert min(late) >= 0
    assert np.median(late) < 0.04e9


def test_missed_ticks_are_counted_and_never_caught_up(tmp_path: Path) -> None:
    source = Sleepy(0.55)
    counts = recorded(tmp_path / "s.bin", source, 0.1, 1.2)
    frames = [frame for frame, _ in samples.frames((tmp_path / "s.bin").read_bytes())]
    ticks = [one.tick for one in frames if isinstance(one, samples.Sample)]
    assert counts.missed >= 4
    assert ticks == sorted(set(ticks))
    assert ticks[1] - ticks[0] >= 5
    assert counts.late >= 1


@pytest.mark.parametrize("fault", [OSError(5, "input/output error"), ValueError("?"), None])
def test_a_source_that_fails_is_a_gap_and_is_noted_once(
    tmp_path: Path, fault: Exception | None
) -> None:
    recorded(tmp_path / "s.bin", Failing(fault), 0.05, 0.4)
    recording = read_recording(tmp_path / "s.bin")
    assert recording is not None
    assert len(list(recording.noted("failing"))) == 1
    series = recording.find("node", "count")
    assert series is not None
    assert set(series.raw) == {samples.NOT_READ}
    assert series.mean(0, 1 << 62) is None


def test_a_full_disk_costs_samples_and_nothing_else(tmp_path: Path) -> None:
    collector = Collector()
    collector.begin(Path("/dev/full"), Observed(directory=tmp_path), {"all": 0.0})
    seen = collector.end()
    assert seen.problem == "recording stopped: No space left on device"


def test_where_nothing_can_be_written_the_reason_is_told(tmp_path: Path) -> None:
    collector = Collector()
    collector.begin(tmp_path / "missing" / "s.bin", Observed(), {})
    seen = collector.end()
    assert seen.problem is not None
    assert "No such file" in seen.problem


def test_a_killed_collector_leaves_a_file_readable_to_its_last_tick(tmp_path: Path) -> None:
    path = tmp_path / "s.bin"
    script = (
        "import sys, time\nfrom pathlib import Path\n"
        "from harness.collect.collector import Collector\n"
        "from harness.collect.sampler import Observed\n"
        "path = Path(sys.argv[1])\n"
        "Collector().begin(path, Observed(directory=path.parent), {})\n"
        "print('begun', flush=True)\ntime.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    wait_for(path, ("core:0", "cpu.user"))
    killed = time.monotonic_ns()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    recording = read_recording(path)
    assert recording is not None
    assert not recording.whole
    series = recording.find("core:0", "cpu.user")
    assert series is not None
    assert killed - int(series.times_ns[-1]) < 1e9


def test_what_observing_costs_is_itself_recorded(tmp_path: Path) -> None:
    recording, end = observe(tmp_path / "s.bin", 2.5, ranks={0: os.getpid()})
    assert end == {"problem": None, "stand_ins": []}
    assert recording.whole
    cost = recording.find("observer", "observer.cpu")
    peak = recording.find("observer", "observer.peak")
    assert cost is not None
    assert peak is not None
    share = cost.mean(int(cost.times_ns[0]), int(cost.times_ns[-1]))
    assert share is not None
    assert 0 < share < 0.05
    assert float(peak.values[-1]) < 80 * 2**20


def test_rates_are_settable_and_zero_is_off(tmp_path: Path) -> None:
    recording, _ = observe(tmp_path / "s.bin", 1.0, rates={"processor": 50.0, "network": 0.0})
    core = recording.find("core:0", "cpu.user")
    assert core is not None
    assert core.period_ns == 20_000_000
    off = [note for note in recording.noted("unavailable") if note["source"] == "network"]
    assert off[0]["reason"] == "switched off"


def test_a_counter_is_followed_as_the_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "s.bin"
    follower = Follower(path)
    assert follower.look() == {}
    group = samples.Declared(0, "x", 10**9, 0, (Channel("n", "1", "counter", "node", wraps=100),))
    data = samples.header() + samples.declare(group) + samples.sample(0, 0, 0, 1, [90])
    path.write_bytes(data[:-3])
    assert follower.look() == {}
    path.write_bytes(data + samples.sample(0, 1, 2 * 10**9, 1, [10]))
    assert follower.look()["node", "n"].value == pytest.approx(10.0)
