"""Measure what observing costs: CPU seconds per minute, and memory, beside neighbours.

A full node stands in: the cores of this machine, four ranks, eight stub GPUs, all of it
read at 10 Hz. Each way runs in a process of its own, in turns; what counts is its CPU time between
two moments of steady running. ``BAKEOFF_NEIGHBOURS_PYTHON`` may name an interpreter with nvitop and
codecarbon; what is not installed is left out.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

STUB = Path(__file__).parents[1] / "collect" / "nvml_stub.c"
CPU_S_PER_MINUTE = 0.8
RESIDENT = 80 * 2**20
ROUNDS = 3
SECONDS = 12

_AROUND = """
import json, os, resource, sys, threading, time
pids = [int(pid) for pid in sys.argv[1:5]]
def measured():
    time.sleep(2)
    begin, cpu = time.monotonic(), time.process_time()
    time.sleep({seconds})
    used, elapsed = time.process_time() - cpu, time.monotonic() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({{"cpu_s_per_minute": 60 * used / elapsed, "peak_bytes": peak}}), flush=True)
    os._exit(0)
threading.Thread(target=measured).start()
"""

_BAKEOFF = """
from pathlib import Path
from harness.collect.collector import Collector
from harness.collect.sampler import Observed
folder = Path(sys.argv[5])
Collector().begin(
    folder / f"{os.getpid()}.bin",
    Observed(dict(enumerate(pids)), {}, {rank: None for rank in range(4)}, folder),
    {"all": 10.0},
)
"""

_PSUTIL = """
import psutil
processes = [psutil.Process(pid) for pid in pids]
while True:
    psutil.cpu_times(percpu=True), psutil.virtual_memory(), psutil.cpu_stats()
    psutil.disk_io_counters(), psutil.net_io_counters()
    for process in processes:
        with process.oneshot():
            process.cpu_times(), process.memory_info(), process.num_threads(), process.io_counters()
    time.sleep(0.1)
"""

_NVITOP = """
from nvitop import Device, ResourceMetricCollector
collector = ResourceMetricCollector(devices=Device.all(), interval=0.1)
collector.daemonize(lambda metrics: True, interval=0.1)
"""

_CODECARBON = """
import logging
logging.disable(logging.CRITICAL)
from codecarbon import OfflineEmissionsTracker
OfflineEmissionsTracker(
    country_iso_code="DEU", measure_power_secs=1, save_to_file=False, log_level="critical"
).start()
"""

WAYS = {
    "bakeoff, 10 Hz": (_BAKEOFF, True),
    "psutil loop, 10 Hz, no GPU": (_PSUTIL, True),
    "nvitop collector, 10 Hz": (_NVITOP, False),
    "codecarbon, 1 Hz": (_CODECARBON, False),
}


def measure(script: str, *, ours: bool, folder: str, pids: list[int]) -> dict[str, float] | None:
    """Run one way for a while; None where it is not installed."""
    neighbours = os.environ.get("BAKEOFF_NEIGHBOURS_PYTHON")
    interpreter = sys.executable if ours else neighbours
    if interpreter is None:
        return None
    done = subprocess.run(
        [interpreter, "-c", _AROUND.format(seconds=SECONDS) + script, *map(str, pids), folder],
        env={**os.environ, "LD_LIBRARY_PATH": folder, "STUB_GPUS": "8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=120,
    )
    lines = done.stdout.strip().splitlines()
    told: dict[str, float] | None = json.loads(lines[-1]) if lines else None
    return told


def main() -> int:
    """Measure every way in turns; fail where ours costs more than it may."""
    sleepers = [
        subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.01)"])
        for _ in range(4)
    ]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    try:
        with tempfile.TemporaryDirectory() as folder:
            library = f"{folder}/libnvidia-ml.so.1"
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, str(STUB)], check=True)
            for _ in range(ROUNDS):
                for name, (script, ours) in WAYS.items():
                    pids = [process.pid for process in sleepers]
                    told = measure(script, ours=ours, folder=folder, pids=pids)
                    if told is not None:
                        found[name].append(told)
    finally:
        for process in sleepers:
            process.kill()
            process.wait()
    for name, rounds in found.items():
        if not rounds:
            print(f"{name}: not installed here")
            continue
        cpu = [one["cpu_s_per_minute"] for one in rounds]
        peak = max(one["peak_bytes"] for one in rounds)
        print(
            f"{name}: {statistics.median(cpu):.2f} CPU-s per minute "
            f"({min(cpu):.2f} to {max(cpu):.2f}), {peak / 2**20:.0f} MiB"
        )
    own = found["bakeoff, 10 Hz"]
    cpu_s = statistics.median(one["cpu_s_per_minute"] for one in own)
    return int(cpu_s > CPU_S_PER_MINUTE or max(one["peak_bytes"] for one in own) > RESIDENT)


if __name__ == "__main__":
    sys.exit(main())
