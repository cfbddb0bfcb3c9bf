"""Hold the readers to each other and to fio: the same files, cold, in turns, in one run.

``python -m tests.bench.reading [FOLDER] [ROUNDS]`` makes what it reads in FOLDER, 2.2 GB, and lets
it lie; without one it is made anew and removed. Each round goes through all ways once; a goal is
reached where the middle ratio of the rounds is. torch's reader needs the environment ``torch``.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.stats.estimate import median_interval
from harness.worker.input.dataset import Dataset
from tests.bench.reading.readers import Fio, Reader
from tests.storage.slow_tier import FIGURES, missing, slow_tier

VOLUMES = {"npy": 64, "npz": 32, "hdf5": 32}
SMALL = 768
ASYNC: dict[str, Any] = {
    "reader": "async-thread",
    "batch": 2,
    "buffers": 2,
    "buffer_samples": 4,
    "reader_threads": 4,
}
COMPUTE = 1.3
"""Of the time that reading a batch takes: computing is the longer of the two."""
TIER = "optane"

Rates = dict[str, list[float]]


def main(folder: Path, rounds: int) -> int:
    """Measure, print every figure, and give 1 if a goal is missed."""
    specs = [DataSetSpec("volumes", name, count) for name, count in VOLUMES.items()]
    specs.append(DataSetSpec("small-pictures", "raw", SMALL))
    for spec in specs:
        create(spec, folder / spec.name, doing=lambda _: None)
    npy, npz, hdf5, small = (folder / spec.name for spec in specs)
    missed = _loaders(npy, npz, hdf5, rounds)
    missed += _hidden(npy, rounds)
    missed += _threads(small, rounds)
    return int(bool(missed))


def _loaders(npy: Path, npz: Path, hdf5: Path, rounds: int) -> int:
    """Hold the pread rung to fio, and the asynchronous reader to both and to torch's."""
    plain = {"reader": "pread", "reader_threads": 8, "prefetch": 2, "batch": 8}
    workers = {"reader": "dataloader", "reader_threads": 2, "prefetch": 2, "batch": 2}
    ours, torch = Path(sys.executable), _torch()
    groups: list[dict[str, Any]] = [
        {
            "pread × 8, npy": Reader(ours, npy, plain),
            "async, npy": Reader(ours, npy, ASYNC),
            "async, npy, one thread": Reader(ours, npy, {**ASYNC, "reader_threads": 1}),
        },
        {"pread × 8, hdf5": Reader(ours, hdf5, plain), "async, hdf5": Reader(ours, hdf5, ASYNC)},
        {"async, npz": Reader(ours, npz, ASYNC)},
    ]
    if shutil.which("fio"):
        groups[0]["fio × 8, npy"] = Fio(npy, 8)
    if torch is not None:
        groups[2]["torch DataLoader × 2, npz"] = Reader(torch, npz, workers)
    rates: Rates = {}
    for ways in groups:
        with ExitStack() as stack:
            for way in ways.values():
                stack.enter_context(closing(way))
            rates |= _rates(ways, rounds)
    return (
        _held("pread × 8, npy", "fio × 8, npy", 0.9, rates)
        + _held("async, npy", "pread × 8, npy", 0.9, rates)
        + _held("async, hdf5", "pread × 8, hdf5", 0.7, rates)
        + _held("async, npz", "torch DataLoader × 2, npz", 1.5, rates)
    )


def _rates(ways: Mapping[str, Any], rounds: int) -> Rates:
    """Read with every way in turns, first forwards, then backwards; in MB/s."""
    found: Rates = {name: [] for name in ways}
    cpu: Rates = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name in list(ways)[:: 1 if number % 2 else -1]:
            told = ways[name].epoch()
            if told.get("cache", "cold") != "cold":
                sys.exit(f"{name} read {told['cache']} files: nothing can be said here")
            if number:  # the first round is where memory is touched first
                found[name].append(told["bytes"] / told["elapsed_s"] / 1e6)
                cpu[name] += [told["cpu_s"] / (told["bytes"] / 1e9)] if "cpu_s" in told else []
    for name, rates in found.items():
        spent = f", {statistics.median(cpu[name]):.2f} CPU-s per GB" if cpu[name] else ""
        print(f"{name}: {_told(rates, 'MB/s')}{spent}", flush=True)
    return found


def _hidden(npy: Path, rounds: int) -> int:
    """Ask how much of the reading two buffers hide behind computing that takes longer.

    What is not hidden is waited for. The first buffer of an epoch always is, and is told apart;
    so is how much longer computing takes while both need the same memory.
    """
    one = {**ASYNC, "batch": 1}
    python, steps = Path(sys.executable), VOLUMES["npy"]
    found: Rates = {
        name: [] for name in ("reading", "computing", "computing meanwhile", "first", "waiting")
    }
    with closing(Reader(python, npy, one)) as bare:
        alone = [bare.epoch()["elapsed_s"] for _ in range(5)]
        length_ms = 1e3 * COMPUTE * statistics.median(alone[1:]) / steps
        burning = {**one, "compute": "burn", "compute_ms": length_ms}
        with closing(Reader(python, npy, burning)) as both:
            both.epoch()
            for _ in range(rounds):
                told = both.epoch()
                found["computing"].append(both.computed_s(steps))
                found["reading"].append(bare.epoch()["elapsed_s"])
                found["first"].append(told["first_s"])
                found["waiting"].append(told["waited_s"] - told["first_s"])
                found["computing meanwhile"].append(told["elapsed_s"] - told["waited_s"])
    for name, seconds in found.items():
        print(f"{name}: {_told([1e3 * one for one in seconds], 'ms')}", flush=True)
    later = 1 - ASYNC["buffer_samples"] / steps
    pairs = zip(found["waiting"], found["reading"], strict=True)
    hidden = [1 - waited / (later * reading) for waited, reading in pairs]
    print(f"two buffers hide {_told(hidden, 'of the reading')}; goal 0.95", flush=True)
    return int(statistics.median(hidden) < 0.95)


def _threads(small: Path, rounds: int) -> int:
    """Ask what eight threads gain over one where many small files lie on a slow tier."""
    lacking = missing()
    if lacking is not None:
        print(f"threads on a slow tier: not measured: {lacking}")
        return 0
    with slow_tier(TIER, size="128M") as tier, ExitStack() as stack:
        there = tier.folder / small.name
        shutil.copytree(small, there)
        tier.enter()
        stack.callback(tier.leave)
        shape = {"reader": "pread", "prefetch": 2, "batch": 64, "shuffle": "global"}
        ways = {
            f"pread × {count}, small files on {TIER}": Reader(
                Path(sys.executable), there, {**shape, "reader_threads": count}
            )
            for count in (1, 8)
        }
        for way in ways.values():
            stack.callback(way.close)
        rates = _rates(ways, rounds)
    one, eight = ways
    print(f"the tier's own figures allow {_allowed(small, rates[one]):.2f} times", flush=True)
    return _held(eight, one, 2.3, rates)


def _allowed(small: Path, rates: list[float]) -> float:
    """Give what no number of threads can gain more than: the tier's figures over one thread's."""
    figures = tomllib.loads(FIGURES.read_text("utf-8"))[TIER]
    mean = Dataset(str(small)).manifest["sample_bytes"] / SMALL
    most = min(figures["bytes_per_s"], figures["requests_per_s"] * mean)
    return float(most / 1e6 / statistics.median(rates))


def _held(name: str, against: str, goal: float, rates: Rates) -> int:
    if against not in rates:
        print(f"{name} over {against}: not measured, it is not here")
        return 0
    ratios = [one / other for one, other in zip(rates[name], rates[against], strict=True)]
    print(f"{name} over {against}: {_told(ratios, '')}; goal {goal}", flush=True)
    return int(statistics.median(ratios) < goal)


def _told(values: list[float], unit: str) -> str:
    form = ".0f" if statistics.median(values) > 20 else ".3f"
    told = median_interval(values)
    spread = "" if told is None else f" [{told.low:{form}}, {told.high:{form}}], {told.level:.0%}"
    return f"{statistics.median(values):{form}} {unit}".rstrip() + spread


def _torch() -> Path | None:
    listed = subprocess.run(
        [sys.executable, "-m", "harness.cli", "env", "list", "--json"],
        check=False,
        capture_output=True,
        text=True,
    )
    rows = json.loads(listed.stdout or "[]")
    ready = (one["python"] for one in rows if one["name"] == "torch" and one["state"] == "ready")
    found = next(ready, None)
    return None if found is None else Path(found)


if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    if len(sys.argv) > 1:
        sys.exit(main(Path(sys.argv[1]), count))
    with tempfile.TemporaryDirectory() as made:
        sys.exit(main(Path(made), count))
