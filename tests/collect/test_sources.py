"""Hold sources to psutil where the machine has them, else to files as kernels write."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness import plugins
from harness.collect.sampler import Observed, Sampler
from harness.errors import Unavailable
from harness.store.samples import samples_format

LINUX = Path("/proc/stat").exists()


def opened(name: str, observed: Observed | None = None) -> Sampler:
    sampler: Sampler = plugins.load("samplers", name).open(observed or Observed())
    return sampler


def reading(sampler: Sampler) -> dict[tuple[str, str], float]:
    raw = sampler.read()
    assert len(raw) == len(sampler.channels)
    return {
        (channel.scope, channel.name): value * channel.scale
        for channel, value in zip(sampler.channels, raw, strict=True)
        if value > samples_format.HIGHEST_GAP
    }


def between(before: float, now: float, after: float, slack: float = 0.0) -> bool:
    return before - slack <= now <= after + slack


@pytest.fixture
def tree(tmp_path: Path) -> Any:
    def write(files: dict[str, str]) -> Observed:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return Observed(root=tmp_path)

    return write


def test_every_source_opens_or_says_why_not(tmp_path: Path) -> None:
    for entry, module in plugins.loaded("samplers"):
        assert module is not None, entry.problem
        assert module.HZ > 0
        try:
            sampler = module.open(Observed(ranks={0: os.getpid()}, directory=tmp_path))
        except Unavailable:
            with pytest.raises(Unavailable, match=r"\w{3}"):
                module.open(Observed())
            continue
        assert len(sampler.read()) == len(sampler.channels)
        sampler.close()


def test_cores_are_read_as_psutil_reads_them() -> None:
    sampler = opened("processor")
    before = psutil.cpu_times(percpu=True)
    told = reading(sampler)
    after = psutil.cpu_times(percpu=True)
    for core, (first, last) in enumerate(zip(before, after, strict=True)):
        for state in ("user", "nice", "system", "idle", "iowait", "softirq", "steal"):
            now = told[f"core:{core}", f"cpu.{state}"]
            # idle time is corrected backwards now and then: the kernel says so itself
            assert between(getattr(first, state), now, getattr(last, state), 0.05), state
    switches = told["node", "switches"]
    assert between(switches, switches, psutil.cpu_stats().ctx_switches)


def test_memory_is_read_as_psutil_reads_it() -> None:
    sampler = opened("memory")
    before = psutil.virtual_memory()
    told = reading(sampler)
    after = psutil.virtual_memory()
    assert told["node", "memory.total"] == after.total
    least, most = sorted((before.available, after.available))
    assert between(least, told["node", "memory.available"], most, 0.05 * after.total)


def test_interfaces_and_disks_are_read_as_psutil_reads_them() -> None:
    sampler = opened("network")
    first = psutil.net_io_counters(pernic=True, nowrap=False)
    told = reading(sampler)
    last = psutil.net_io_counters(pernic=True, nowrap=False)
    for (scope, channel), now in told.items():
        name = scope.partition(":")[2]
        if channel == "net.received" and name in first and name in last:  # others come and go
            assert between(first[name].bytes_recv, now, last[name].bytes_recv)
    try:
        disks = opened("disks")
    except Unavailable:
        return
    before = psutil.disk_io_counters(perdisk=True, nowrap=False)
    told = reading(disks)
    after = psutil.disk_io_counters(perdisk=True, nowrap=False)
    for (scope, channel), now in told.items():
        name = scope.partition(":")[2]
        if channel == "disk.written" and name in before and name in after:
            assert between(before[name].write_bytes, now, after[name].write_bytes)


def test_interfaces_made_of_others_are_not_counted_twice(tree: Any) -> None:
    lines = [f"  {name}: 100 1 0 0 0 0 0 0 50 1 0 0 0 0 0 0" for name in ("eth0", "bond0")]
    files = {"proc/net/dev": "\n".join(["Inter-|", " face |", *lines, ""])}
    told = reading(opened("network", tree({**files, "sys/class/net/bond0/lower_eth0": ""})))
    assert {scope for scope, _ in told} == {"net:eth0"}
    assert told["net:eth0", "net.sent"] == 50


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[str]]:
    """A process that used half a second in itself and in a child that it reaped."""
    script = (
        "import subprocess, sys, time\n"
        "burn = 'import time\\nwhile time.process_time() < 0.3: pass'\n"
        "subprocess.run([sys.executable, '-c', burn])\n"
        "while time.process_time() < 0.2: pass\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.communicate()


def test_a_rank_is_its_whole_tree_reaped_children_included(worker: subprocess.Popen[str]) -> None:
    told = reading(opened("ranks", Observed(ranks={3: worker.pid})))
    times = psutil.Process(worker.pid).cpu_times()
    used = told["rank:3", "rank.user"] + told["rank:3", "rank.system"]
    assert used == pytest.approx(sum(times[:4]), abs=0.02)
    assert used >= 0.47
    # the kernel counts pages per core and adds up now and then
    resident = psutil.Process(worker.pid).memory_info().rss
    assert told["rank:3", "rank.resident"] == pytest.approx(resident, rel=0.1)
    assert told["rank:3", "rank.threads"] == 1


def test_a_rank_that_ended_says_nothing_more() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    sampler = opened("ranks", Observed(ranks={0: process.pid}))
    assert ("rank:0", "rank.user") in reading(sampler)
    process.communicate(b"\n")
    # its last total again would say that it stood still until it ended
    assert reading(sampler) == {}
    sampler.close()


def test_rapl_says_where_it_wraps_and_only_root_may_read_it(tree: Any) -> None:
    folder = "sys/class/powercap/intel-rapl:0"
    observed = tree(
        {
            f"{folder}/name": "package-0\n",
            f"{folder}/energy_uj": "262143328000\n",
            f"{folder}/max_energy_range_uj": "262143328850\n",
            # the same package once more, over memory
            "sys/class/powercap/intel-rapl-mmio:0/name": "package-0\n",
            "sys/class/powercap/intel-rapl-mmio:0/energy_uj": "7\n",
        }
    )
    sampler = opened("energy", observed)
    assert len(sampler.channels) == 1
    assert sampler.channels[0].wraps == 262143328851
    assert reading(sampler) == {("rapl:0/package-0", "energy"): pytest.approx(262143.328)}


def test_fast_memory_is_known_by_having_no_cores(tree: Any) -> None:
    files = {}
    for node, cpus in ((0, "0-67"), (1, "")):
        folder = f"sys/devices/system/node/node{node}"
        files[f"{folder}/cpulist"] = cpus + "\n"
        files[f"{folder}/meminfo"] = f"Node {node} MemTotal:       16777216 kB\n"
        files[f"{folder}/numastat"] = "numa_hit 5\nnuma_miss 0\nnuma_foreign 0\n"
    sampler = opened("numa", tree(files))
    bare = {channel.scope for channel in sampler.channels if "MCDRAM" in channel.meaning}
    assert bare == {"numa:1"}
    assert reading(sampler)["numa:1", "numa.total"] == 16 * 2**30


def test_fabric_ports_count_words_of_four_bytes(tree: Any) -> None:
    folder = "sys/class/infiniband/mlx5_0/ports/1/counters"
    observed = tree({f"{folder}/port_rcv_data": "250\n", f"{folder}/port_xmit_data": "500\n"})
    assert reading(opened("fabric", observed)) == {
        ("fabric:mlx5_0/1", "fabric.received"): 1000,
        ("fabric:mlx5_0/1", "fabric.sent"): 2000,
    }


def test_links_that_trained_down_are_told_by_speed_and_lanes(tree: Any) -> None:
    observed = tree(
        {
            "sys/class/net/eth0/speed": "25000\n",
            "sys/class/net/eth0/operstate": "up\n",
            "sys/class/net/eth0/device/current_link_width": "8\n",
            "sys/class/net/lo/speed": "0\n",
            "sys/class/infiniband/mlx5_0/ports/1/rate": "50 Gb/sec (2X EDR)\n",
            "sys/class/infiniband/mlx5_0/device/current_link_width": "16\n",
        }
    )
    assert reading(opened("links", observed)) == {
        ("link:eth0", "link.speed"): 25e9 / 8,
        ("link:eth0", "link.lanes"): 8,
        ("link:mlx5_0/1", "link.speed"): 50e9 / 8,
        ("link:mlx5_0", "link.lanes"): 16,
    }
    (observed.root / "sys/class/infiniband/mlx5_0/ports/1/rate").write_text("\n")
    (observed.root / "sys/class/net/eth0/speed").write_text("-1\n")
    assert reading(opened("links", observed)).keys() == {
        ("link:eth0", "link.lanes"),
        ("link:mlx5_0", "link.lanes"),
    }


def test_memory_controllers_tell_what_they_corrected(tree: Any) -> None:
    counts = {"mc0/ce_count": "7\n", "mc0/ue_count": "0\n", "mc1/ce_count": "1\n"}
    observed = tree({f"sys/devices/system/edac/mc/{at}": text for at, text in counts.items()})
    assert reading(opened("edac", observed)) == {
        ("memory:mc0", "edac.corrected"): 7,
        ("memory:mc0", "edac.uncorrected"): 0,
        ("memory:mc1", "edac.corrected"): 1,
    }


def test_lustre_gives_sums_and_counts(tree: Any) -> None:
    text = (
        "snapshot_time 1409777887.590578 secs.nsecs\n"
        "read_bytes 27491 samples [bytes] 1 4194304 45392347\n"
        "open 44 samples [usecs] 1 2 60\n"
    )
    observed = tree({"proc/fs/lustre/llite/scratch-ffff/stats": text})
    told = reading(opened("lustre", observed))
    assert told["lustre:scratch-ffff", "lustre.read"] == 45392347
    assert told["lustre:scratch-ffff", "lustre.reads"] == 27491
    assert told["lustre:scratch-ffff", "lustre.opens"] == 44
    assert told["lustre:scratch-ffff", "lustre.written"] == 0


def test_clocks_and_heat_are_read_per_core(tree: Any) -> None:
    folder = "sys/devices/system/cpu/cpu0"
    observed = tree(
        {
            f"{folder}/cpufreq/scaling_cur_freq": "2100000\n",
            f"{folder}/thermal_throttle/core_throttle_count": "3\n",
        }
    )
    assert reading(opened("frequency", observed)) == {
        ("core:0", "clock"): 2.1e9,
        ("core:0", "throttled.core"): 3,
    }


def test_quotas_are_found_in_the_groups_above_the_ranks(tree: Any) -> None:
    top = "sys/fs/cgroup"
    observed = tree(
        {
            "proc/self/cgroup": "0::/job/step\n",
            "proc/self/mountinfo": "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            f"{top}/job/step/cpu.stat": "usage_usec 2000000\n",
            f"{top}/job/step/memory.current": "1048576\n",
            f"{top}/job/cpu.max": "150000 100000\n",
            f"{top}/job/cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_usec 5\n",
        }
    )
    told = reading(opened("groups", observed))
    job = "cgroup:/sys/fs/cgroup/job"
    assert told[job, "group.quota"] == pytest.approx(1.5)
    assert told[job, "group.throttled-periods"] == 4
    assert told[f"{job}/step", "group.cpu"] == 2.0
    assert told[f"{job}/step", "group.memory"] == 2**20


def test_a_core_that_goes_off_line_is_a_gap(tree: Any) -> None:
    def stat(*cores: int) -> str:
        lines = ["cpu  9 9 9 9 9 9 9 9 0 0"]
        lines += [f"cpu{core} 1 2 3 4 5 6 7 8 0 0" for core in cores]
        return "\n".join([*lines, "intr 5 4 3", "ctxt 17", "processes 3", ""])

    sampler = opened("processor", tree({"proc/stat": stat(0, 1)}))
    tree({"proc/stat": stat(1)})
    told = reading(sampler)
    assert ("core:0", "cpu.user") not in told
    assert told["core:1", "cpu.system"] == pytest.approx(0.03)
    assert told["node", "switches"] == 17


def test_elsewhere_than_on_linux_psutil_gives_the_same_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Unavailable, match="Linux's own files"):
        opened("portable")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    told = reading(opened("portable", Observed(ranks={0: os.getpid()})))
    ours = reading(opened("processor"))
    assert told["core:0", "cpu.user"] == pytest.approx(ours["core:0", "cpu.user"], rel=0.1)
    assert told["rank:0", "rank.resident"] > 0


def test_neighbours_are_named_and_the_ranks_and_the_observer_are_none(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, rank, child, neighbour, kernel = os.getpid(), 71, 72, 73, 74

    def processes(seconds: int) -> Observed:
        of = {own: 1, rank: 1, child: rank, neighbour: 1, kernel: 2, 75: 76, 76: 75}
        files = {}
        for pid, parent in of.items():
            flags = 0x00208040 if pid == kernel else 0x00400000
            took_s = 1 if pid >= kernel and pid != own else seconds
            ticks = took_s * bool(seconds) * os.sysconf("SC_CLK_TCK")
            told = f"S {parent} 0 0 0 0 {flags} 0 0 0 0 {ticks} 0 {'0 ' * 6}{pid} 0"
            files[f"proc/{pid}/stat"] = f"{pid} (a (b) c) {told}"
        files[f"proc/{neighbour}/cmdline"] = "/usr/bin/python3\0/home/you/burn.py\0--key=s\0"
        return Observed(ranks={0: rank}, root=tree(files).root)

    sampler = opened("neighbours", processes(0))
    cpu, kernel_cpu = ("node", "neighbours.cpu"), ("node", "neighbours.kernel")
    assert reading(sampler) == {cpu: 0, kernel_cpu: 0}
    module = sys.modules[type(sampler).__module__]
    monkeypatch.setattr(module, "SHORTEST_S", 0)
    processes(5)
    assert reading(sampler) == {cpu: 8, kernel_cpu: 1}  # also of two that are each other's parents
    (news,) = sampler.news()  # type: ignore[attr-defined]
    pid, name, _ = news["top"][0]
    assert (pid, name) == (neighbour, "python3 burn.py")
    assert not sampler.news()  # type: ignore[attr-defined]


def test_whole_disks_are_read_and_one_that_was_taken_out_is_lost(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = "7 0 16 3 9 0 32 4 1 5 9"
    files = ("sda/stat", "loop0/stat", "dm-0/stat", "dm-0/slaves/sda")
    disks = opened("disks", tree({f"sys/block/{file}": numbers for file in files}))
    try:
        told = reading(disks)
        assert told[("disk:sda", "disk.written")] == 32 * 512
        assert told[("disk:sda", "disk.in-flight")] == 1
        assert {scope for scope, _ in told} == {"disk:sda"}

        def gone(*_: Any) -> bytes:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))

        monkeypatch.setattr(os, "pread", gone)
        assert set(disks.read()) == {samples_format.LOST}
    finally:
        disks.close()
