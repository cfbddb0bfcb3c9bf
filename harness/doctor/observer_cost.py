"""Measure what observing costs: a load on every core, observed and not, in turns.

One collector records all the while, and stands still in every other slice. Each turn is a pair of
slices in random order, and short, so that whatever drifts hits both alike. Going on, the collector
reads at once what has become due meanwhile: the slow sources are read more often here than in a
trial, and the result errs to the side of too much. What the load gets done in a second with the
collector, over what without, is the slow-down.
"""

from __future__ import annotations

import math
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import user_folders
from harness.errors import RunError
from harness.stats.student import critical_t
from harness.store.files import write_json
from harness.store.json_text import parse
from harness.store.samples.recording import read_recording
from harness.store.typed import read

VERSION = 3  # 2: with the pairs themselves; 3: shorter slices, of one recording
SLICE_S = 0.25
PAIRS = 240
WIDEST = 0.02
"""A wider interval, as a fraction of the speed, answers nothing: more pairs are asked for."""
_LOAD = """
import sys, time
done, begin, used = 0, time.monotonic_ns(), time.process_time_ns()
while True:
    for _ in range(2000):
        done += 1
    now = time.monotonic_ns()
    if now - begin >= 10_000_000:
        cpu = time.process_time_ns()
        sys.stdout.write("%d %d %d %d\\n" % (begin, now, cpu - used, done))
        sys.stdout.flush()
        done, begin, used = 0, now, cpu
"""


@dataclass(frozen=True)
class ObserverStudy:
    """The result; shares of speed."""

    host: str
    wall_ns: int
    pairs: int
    slice_s: float
    slow_down: float
    """By how much the load was slower while observed; negative where it was faster."""
    low: float
    high: float
    level: float
    per_cpu: tuple[float, float, float]
    """The same of what a second of CPU time got done, with its interval: what caches and clocks
    lost. Neighbours, who take whole slices of time, hardly disturb it."""
    cpu_share: float | None
    """What the collector itself used of one core while it observed."""
    logs: tuple[float, ...]
    """Of each pair: the logarithm of speed without over speed with."""
    cpu_logs: tuple[float, ...]
    """The same per second of CPU time."""
    version: int = VERSION

    @property
    def more_pairs(self) -> int | None:
        """How many more pairs would probably make the interval narrow enough; None if it is."""
        width = self.high - self.low
        if width <= WIDEST:
            return None
        return math.ceil(self.pairs * ((width / WIDEST) ** 2 - 1))


@dataclass(frozen=True)
class Slice:
    """When something was observed or not."""

    observed: bool
    start_ns: int
    end_ns: int


def carry_out(
    pairs: int = PAIRS, *, slice_s: float = SLICE_S, before: ObserverStudy | None = None
) -> ObserverStudy:
    """Measure for ``2 * pairs * slice_s`` seconds, and add that to what was measured before."""
    seed = 0 if before is None else before.pairs
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bakeoff-")))
        loads = [_load(stack, folder, core) for core in sorted(os.sched_getaffinity(0))]
        collector = _collector(stack, folder, [process.pid for process in loads])
        _ask(collector, "begin")
        slices = _slices(collector, pairs, slice_s, random.Random(seed))
        _ask(collector, "end")
        _end(loads)
        windows = [_windows(folder / f"load.{process.pid}") for process in loads]
        (recording,) = folder.glob("*.bin")
        share = _share(recording, slices)
    return _study(slices, windows, slice_s, share, before)


def _load(stack: ExitStack, folder: Path, core: int) -> subprocess.Popen[bytes]:
    """Start the load on one core; it writes how much it got done to a file."""
    told = stack.enter_context((folder / f"core.{core}").open("wb"))
    process = subprocess.Popen([sys.executable, "-S", "-c", _LOAD], stdout=told)
    stack.callback(_end, [process])
    os.sched_setaffinity(process.pid, {core})
    (folder / f"core.{core}").rename(folder / f"load.{process.pid}")
    return process


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        process.wait()


def _collector(stack: ExitStack, folder: Path, pids: Sequence[int]) -> subprocess.Popen[str]:
    """Start a collector in a process of its own, as an agent would be."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "harness.collect", str(folder), *map(str, pids)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stack.callback(_let_go, process)
    _said(process)
    return process


def _let_go(collector: subprocess.Popen[str]) -> None:
    """Let it end by itself, also where the study was broken off while it stood still."""
    collector.send_signal(signal.SIGCONT)
    collector.communicate()


def _said(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    if not process.stdout.readline():
        raise RunError("The collector ended by itself; `bakeoff collect -- true` shows why.")


def _ask(collector: subprocess.Popen[str], word: str) -> None:
    assert collector.stdin is not None
    collector.stdin.write(word + "\n")
    collector.stdin.flush()
    _said(collector)


def _slices(
    collector: subprocess.Popen[str], pairs: int, slice_s: float, draw: random.Random
) -> list[Slice]:
    told: list[Slice] = []
    for _ in range(pairs):
        for observed in draw.sample([True, False], 2):
            collector.send_signal(signal.SIGCONT if observed else signal.SIGSTOP)
            start = time.monotonic_ns()
            time.sleep(slice_s)
            told.append(Slice(observed, start, time.monotonic_ns()))
    collector.send_signal(signal.SIGCONT)
    return told


Window = tuple[int, int, int, int]
"""Begin, end, CPU time, work done."""


def _windows(path: Path) -> list[Window]:
    found = []
    for line in path.read_text(encoding="ascii").splitlines():
        fields = line.split()
        if len(fields) == 4:  # the last line may be cut
            found.append((int(fields[0]), int(fields[1]), int(fields[2]), int(fields[3])))
    return found


def _rates(one: Slice, windows: Sequence[Sequence[Window]]) -> tuple[float, float]:
    """Give what the loads got done in a slice, per second and per second of CPU time."""
    per_second = per_cpu = 0.0
    for load in windows:
        inside = [w for w in load if one.start_ns <= w[0] and w[1] <= one.end_ns]
        done = sum(w[3] for w in inside)
        per_second += done / max(1, sum(w[1] - w[0] for w in inside))
        per_cpu += done / max(1, sum(w[2] for w in inside))
    return per_second, per_cpu


def _study(
    slices: Sequence[Slice],
    windows: Sequence[Sequence[Window]],
    slice_s: float,
    share: float | None,
    before: ObserverStudy | None,
) -> ObserverStudy:
    logs, cpu_logs = (list(before.logs), list(before.cpu_logs)) if before else ([], [])
    if before is not None and before.cpu_share is not None and share is not None:
        new = len(slices) // 2
        share = (before.pairs * before.cpu_share + new * share) / (before.pairs + new)
    for first, second in zip(slices[::2], slices[1::2], strict=True):
        on, off = (first, second) if first.observed else (second, first)
        with_it, without = _rates(on, windows), _rates(off, windows)
        logs.append(math.log(without[0] / with_it[0]))
        cpu_logs.append(math.log(without[1] / with_it[1]))
    return summarise(logs, cpu_logs, slice_s=slice_s, share=share)


def _interval(logs: Sequence[float]) -> tuple[float, float, float]:
    """Turn logarithms of speed without over speed with into a slow-down and its interval."""
    count = len(logs)
    mean = sum(logs) / count
    spread = math.sqrt(sum((one - mean) ** 2 for one in logs) / max(1, count - 1))
    reach = critical_t(0.05, count - 1) * spread / math.sqrt(count)
    return 1 - math.exp(-mean), 1 - math.exp(-(mean - reach)), 1 - math.exp(-(mean + reach))


def summarise(
    logs: Sequence[float], cpu_logs: Sequence[float], *, slice_s: float, share: float | None
) -> ObserverStudy:
    """Turn the pairs into a result."""
    slow_down, low, high = _interval(logs)
    return ObserverStudy(
        host=socket.gethostname(),
        wall_ns=time.time_ns(),
        pairs=len(logs),
        slice_s=slice_s,
        slow_down=slow_down,
        low=low,
        high=high,
        level=0.95,
        per_cpu=_interval(cpu_logs),
        cpu_share=share,
        logs=tuple(logs),
        cpu_logs=tuple(cpu_logs),
    )


def _share(path: Path, slices: Sequence[Slice]) -> float | None:
    """Give the collector's own use of a core while it did not stand still."""
    recording = read_recording(path)
    series = None if recording is None else recording.find("observer", "observer.cpu")
    if series is None or len(series.raw) < 2:
        return None
    observed_ns = sum(one.end_ns - one.start_ns for one in slices if one.observed)
    return float(series.values[-1] - series.values[0]) * 1e9 / observed_ns


def _place() -> Path:
    return user_folders.state_home() / f"observer.{socket.gethostname()}.json"


def keep(study: ObserverStudy) -> Path:
    """Remember the latest study of this machine: every later run's report prints it."""
    place = _place()
    place.parent.mkdir(parents=True, exist_ok=True)
    write_json(place, asdict(study))
    return place


def kept() -> ObserverStudy | None:
    """Give the latest study of this machine; None if there is none of this format."""
    try:
        stored = read(ObserverStudy, parse(_place().read_bytes()))
    except (OSError, ValueError):
        return None
    return stored if stored.version == VERSION else None


def latest() -> dict[str, object] | None:
    """Give what a run's provenance keeps of the latest study."""
    study = kept()
    if study is None:
        return None
    fields = asdict(study)
    return {name: fields[name] for name in fields if name not in ("logs", "cpu_logs")}
