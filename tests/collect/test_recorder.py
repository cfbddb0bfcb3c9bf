"""Hold the recorder to its ticks, and a killed collector to what it had written."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.collect import lane as lanes
from harness.collect import recorder
from harness.collect.collector import Collector
from harness.collect.lane import Counts, Group, Lane
from harness.collect.recorder import Recording
from harness.collect.sampler import Observed
from harness.store.samples import samples_format
from harness.store.samples.follow_samples import Follower
from harness.store.samples.recording import read_recording
from harness.store.samples.samples_format import Channel
from tests.collect.observing import observe, wait_for

WAKES_LATE_NS = 3_000_000


class Clock:
    """Time that passes only where somebody reads or waits, and what a lane is told meanwhile."""

    def __init__(self, ends_after_s: float) -> None:
        self._now = 10**9
        self._words: deque[str] = deque()
        self._calls: list[tuple[int, Callable[[Lane], None]]] = []
        self.lane: Lane
        self.call(Lane.stop, at_s=ends_after_s)

    def call(self, method: Callable[[Lane], None], *, at_s: float) -> None:
        """Ask the lane for something so many seconds after its begin."""
        self._calls.append((10**9 + int(at_s * 1e9), method))
        self._calls.sort(key=lambda one: one[0])

    def monotonic_ns(self) -> int:
        return self._now

    time_ns = monotonic_ns

    def sleep(self, seconds: float) -> None:
        self._now += int(seconds * 1e9)

    def put(self, word: str) -> None:
        self._words.append(word)

    def get(self, timeout: float | None = None) -> str:
        """Wait as for the words to the lane, which is asked for what is due meanwhile."""
        until = None if timeout is None else self._now + int(timeout * 1e9)
        while not self._words:
            due_ns, method = self._calls[0]
            if until is not None and until < due_ns:
                self._now = until + WAKES_LATE_NS
                raise queue.Empty
            self._now = max(self._now, due_ns)
            self._calls.pop(0)
            method(self.lane)
        return self._words.popleft()


class Sleepy:
    """A source whose readings take as long as they are told."""

    channels = (Channel("count", "1", "counter", "node"),)

    def __init__(self, clock: Clock, *takes_s: float) -> None:
        self._clock = clock
        self._takes_s = list(takes_s)
        self.readings = 0

    def read(self) -> list[int]:
        self.readings += 1
        if self._takes_s:
            self._clock.sleep(self._takes_s.pop(0))
        return [self.readings]

    def close(self) -> None:
        pass


class Failing(Sleepy):
    def __init__(self, clock: Clock, fault: Exception | None) -> None:
        super().__init__(clock)
        self._fault = fault

    def read(self) -> list[int]:
        if self._fault is None:
            return [1, 2]
        raise self._fault


Recorded = Callable[[Path, Sleepy, float], Counts]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(ends_after_s=1.2)
    monkeypatch.setattr(recorder, "time", made)
    monkeypatch.setattr(lanes, "time", made)
    return made


@pytest.fixture
def recorded(clock: Clock) -> Recorded:
    """Keep a lane's ticks in this thread: no machine is too busy for that."""

    def record(path: Path, source: Sleepy, period_s: float) -> Counts:
        recording = Recording(path, node="here")
        counts = Counts()
        lane = Lane(
            "test", recording, counts, lambda: [Group("sleepy", source, int(period_s * 1e9))]
        )
        lane._words, clock.lane = clock, lane  # type: ignore[assignment]
        lane.run()
        recording.close()
        return counts

    return record


def test_ticks_do_not_drift_whatever_a_reading_takes(
    tmp_path: Path, clock: Clock, recorded: Recorded
) -> None:
    recorded(tmp_path / "s.bin", Sleepy(clock, *[0.01] * 50), 0.05)
    frames = [frame for frame, _ in samples_format.frames((tmp_path / "s.bin").read_bytes())]
    (group,) = (one for one in frames if isinstance(one, samples_format.Declared))
    taken = [one for one in frames if isinstance(one, samples_format.Sample)][:-1]
    late = [one.t_before - group.first_due_ns - one.tick * group.period_ns for one in taken]
    assert late == [WAKES_LATE_NS] * 21


def test_missed_ticks_are_counted_and_never_caught_up(
    tmp_path: Path, clock: Clock, recorded: Recorded
) -> None:
    counts = recorded(tmp_path / "s.bin", Sleepy(clock, 0.55), 0.1)
    frames = [frame for frame, _ in samples_format.frames((tmp_path / "s.bin").read_bytes())]
    ticks = [one.tick for one in frames if isinstance(one, samples_format.Sample)]
    assert ticks == [0, 5, 6, 7, 8, 9, 10]
    assert (counts.missed, counts.late) == (4, 1)


def test_nothing_is_read_while_the_trial_stands_still(
    tmp_path: Path, clock: Clock, recorded: Recorded
) -> None:
    for start_s, end_s in ((0.42, 0.58), (0.7, 1.17)):
        clock.call(Lane.stand_still, at_s=start_s)
        clock.call(Lane.go_on, at_s=end_s)
    counts = recorded(tmp_path / "s.bin", Sleepy(clock), 0.3)
    frames = [frame for frame, _ in samples_format.frames((tmp_path / "s.bin").read_bytes())]
    taken = [one for one in frames if isinstance(one, samples_format.Sample)]
    seconds = [round(one.t_before / 1e9 - 1, 1) for one in taken]
    # its ticks are 0.2, 0.5, 0.8, 1.1: it is read on them, and where the trial stops and goes on
    assert seconds == [0.2, 0.4, 0.6, 0.7, 1.2, 1.2]
    assert [one.tick for one in taken] == [0, 0, 1, 1, 3, 4]
    assert (counts.missed, counts.late) == (0, 0)


@pytest.mark.parametrize("fault", [OSError(5, "input/output error"), ValueError("?"), None])
def test_a_source_that_fails_is_a_gap_and_is_noted_once(
    tmp_path: Path, fault: Exception | None, clock: Clock, recorded: Recorded
) -> None:
    recorded(tmp_path / "s.bin", Failing(clock, fault), 0.05)
    recording = read_recording(tmp_path / "s.bin")
    assert recording is not None
    assert len(list(recording.noted("failing"))) == 1
    series = recording.find("node", "count")
    assert series is not None
    assert set(series.raw) == {samples_format.NOT_READ}
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
    seen = wait_for(path, ("core:0", "cpu.user"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    recording = read_recording(path)
    assert recording is not None
    assert not recording.whole
    series = recording.find("core:0", "cpu.user")
    assert series is not None
    assert int(series.before_ns[-1]) >= seen.t_ns


def test_a_reading_whose_declaration_is_damaged_ends_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "samples.node.bin"
    channel = Channel("load", "1", "gauge", "node")
    declared = samples_format.declare(samples_format.Declared(0, "x", 10, 0, (channel,)))
    whole = samples_format.sample(0, 1, 0, 1, [5])
    for wrong in (
        samples_format.sample(7, 1, 0, 1, [5]),
        samples_format.sample(0, 2, 2, 3, [5, 6]),
    ):
        path.write_bytes(samples_format.MAGIC + declared + whole + wrong + whole)
        recording = read_recording(path)
        assert recording is not None
        assert [list(one.raw) for one in recording.series] == [[5]]
        assert Follower(path).look()["node", "load"].value == 5


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


def test_what_the_session_uses_beside_the_ranks_is_recorded(tmp_path: Path) -> None:
    recording, _ = observe(tmp_path / "s.bin", 2.5, ranks={0: 1})
    session = recording.find("observer", "observer.session")
    assert session is not None
    assert 0 < session.raw[0] <= session.raw[-1] <= time.process_time_ns()


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
    group = samples_format.Declared(
        0, "x", 10**9, 0, (Channel("n", "1", "counter", "node", wraps=100),)
    )
    data = (
        samples_format.header()
        + samples_format.declare(group)
        + samples_format.sample(0, 0, 0, 1, [90])
    )
    path.write_bytes(data[:-3])
    assert follower.look() == {}
    path.write_bytes(data + samples_format.sample(0, 1, 2 * 10**9, 1, [10]))
    assert follower.look()["node", "n"].value == pytest.approx(10.0)
