"""Drive the real pynvml with a stand-in library, through everything a GPU may do."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from harness.collect.devices import strangers, used_by, visible
from harness.store.samples import samples_format
from harness.store.samples.recording import Recording
from harness.verdicts.disturbances import hardware_evidence
from harness.verdicts.hardware_use import NodeUse, Span, gpu_share, power_w
from tests.cli.command import bakeoff
from tests.collect.observing import observe
from tests.needs import program

SOURCE = Path(__file__).with_name("nvml_stub.c")
UUIDS = [f"GPU-{0xABC00000 + index:08x}-0000-0000-0000-000000000000" for index in range(8)]

Watch = Callable[..., tuple[Recording, dict[str, Any]]]


@cache
def library(*flags: str) -> str:
    folder = mkdtemp(prefix="bakeoff-stub-")
    subprocess.run(
        [
            *(program("cc", "gcc", package="gcc"), "-shared", "-fPIC", "-O1", "-Wall", "-Werror"),
            *(*flags, "-o", f"{folder}/libnvidia-ml.so.1", str(SOURCE)),
        ],
        check=True,
    )
    return folder


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    def start(
        seconds: float = 1.0,
        *flags: str,
        first: tuple[str, str] = (f"gpu:{UUIDS[0]}", "gpu.utilisation"),
        **told: Any,
    ) -> tuple[Recording, dict[str, Any]]:
        stub = {f"STUB_{name.upper()}": str(value) for name, value in told.items()}
        environment = {**os.environ, "LD_LIBRARY_PATH": library(*flags), **stub}
        return observe(
            tmp_path / "samples.bin",
            seconds,
            ranks={0: os.getpid()},
            devices={0: None},
            rates={"nvml": 10.0},
            environment=environment,
            first=first,
        )

    return start


def raw(recording: Recording, index: int, name: str) -> list[int]:
    series = recording.find(f"gpu:{UUIDS[index]}", name)
    assert series is not None
    return [int(value) for value in series.raw]


def rate(recording: Recording, index: int, name: str) -> float:
    series = recording.find(f"gpu:{UUIDS[index]}", name)
    assert series is not None
    told = series.mean(int(series.times_ns[0]), int(series.times_ns[-1]))
    assert told is not None
    return told


def unsure(recording: Recording, index: int, name: str) -> float:
    """Say how far a rate may be off, as readings take their time: on a busy machine, a while."""
    series = recording.find(f"gpu:{UUIDS[index]}", name)
    assert series is not None
    takes = series.after_ns - series.before_ns
    span = series.before_ns[-1] - series.after_ns[0]
    return 0.001 + float(takes[0] + takes[-1]) / span


@pytest.mark.parametrize("count", [2, 8])
def test_every_gpu_is_read_by_its_uuid(watch: Watch, count: int) -> None:
    recording, end = watch(gpus=count)
    for index in range(count):
        assert set(raw(recording, index, "gpu.utilisation")) == {10 * index + 5}
        assert set(raw(recording, index, "gpu.memory-used")) == {(index + 1) << 30}
        off = unsure(recording, index, "gpu.energy")
        assert rate(recording, index, "gpu.energy") == pytest.approx(100.0 * (index + 1), rel=off)
        assert rate(recording, index, "gpu.power.average") == 100.0 * (index + 1)
    assert recording.find(f"gpu:{UUIDS[0]}", "gpu.power") is None, "its fields say which kind it is"
    assert end["stand_ins"] == ["STUB (not a GPU)"]


def test_counters_that_wrap_go_on_counting(watch: Watch) -> None:
    recording, _ = watch(narrow=1)
    sent = raw(recording, 0, "gpu.pcie.sent")
    assert any(after < before for before, after in pairwise(sent))
    off = unsure(recording, 0, "gpu.pcie.sent")
    assert rate(recording, 0, "gpu.pcie.sent") == pytest.approx(1e9, rel=off)
    off = unsure(recording, 1, "gpu.pcie.received")
    assert rate(recording, 1, "gpu.pcie.received") == pytest.approx(2e9, rel=off)
    off = unsure(recording, 1, "gpu.nvlink.sent")
    assert rate(recording, 1, "gpu.nvlink.sent") == pytest.approx(2**30, rel=off)
    energy = recording.find(f"gpu:{UUIDS[0]}", "gpu.energy")
    assert energy is not None
    assert energy.channel.wraps is None, "64 bits that fall have begun anew"


def test_links_that_are_counted_one_by_one_are_added_up(watch: Watch) -> None:
    recording, _ = watch(nvlink=5, links=12)
    off = unsure(recording, 1, "gpu.nvlink.sent")
    assert rate(recording, 1, "gpu.nvlink.sent") == pytest.approx(12 * 1e6, rel=off)
    off = unsure(recording, 1, "gpu.nvlink.received")
    assert rate(recording, 1, "gpu.nvlink.received") == pytest.approx(12 * 3e6, rel=off)


def test_links_that_nobody_counts_are_a_gap(watch: Watch) -> None:
    recording, _ = watch(nvlink=1)
    assert set(raw(recording, 0, "gpu.nvlink.sent")) == {samples_format.UNSUPPORTED}


def test_what_a_chip_does_not_support_is_a_gap_and_never_zero(watch: Watch) -> None:
    recording, _ = watch(old=1)
    assert set(raw(recording, 0, "gpu.energy")) == {samples_format.UNSUPPORTED}
    assert set(raw(recording, 0, "gpu.ecc.uncorrected")) <= {
        samples_format.UNSUPPORTED,
        samples_format.NOT_READ,
    }
    assert set(raw(recording, 0, "gpu.utilisation")) == {5}


def test_lanes_that_were_lost_and_errors_that_were_corrected_are_read(watch: Watch) -> None:
    recording, _ = watch(corrected=12, lanes=8)
    seen = {
        (index, name): set(raw(recording, index, f"gpu.{name}")) - {samples_format.NOT_READ}
        for index in (0, 1)
        for name in ("ecc.corrected", "pcie.lanes", "pcie.generation")
    }
    assert (seen[0, "ecc.corrected"], seen[1, "ecc.corrected"]) == ({12}, {0})
    assert (seen[0, "pcie.lanes"], seen[1, "pcie.lanes"]) == ({8}, {16})
    assert seen[0, "pcie.generation"] == {4}


def test_a_library_without_newer_functions_still_gives_the_rest(watch: Watch) -> None:
    recording, _ = watch(1.0, "-DWITHOUT_FIELDS", slowed=32)
    assert set(raw(recording, 1, "gpu.energy")) == {samples_format.UNSUPPORTED}
    assert set(raw(recording, 0, "gpu.slowed")) == {32}
    # what moves slowly is first read of the first
    assert {40} <= set(raw(recording, 0, "gpu.temperature")) <= {40, samples_format.NOT_READ}
    assert {100_000} <= set(raw(recording, 0, "gpu.power")) <= {100_000, samples_format.NOT_READ}


def test_a_gpu_lost_in_mid_run_is_lost_from_then_on_and_alone(watch: Watch) -> None:
    recording, _ = watch(lost="1@2")  # asked once when it is opened
    told = raw(recording, 1, "gpu.utilisation")
    first = told.index(samples_format.LOST)
    assert first == 1
    assert set(told[:first]) == {15}
    assert set(told[first:]) == {samples_format.LOST}
    assert set(raw(recording, 0, "gpu.utilisation")) == {5}


def test_slow_calls_delay_no_other_source(watch: Watch) -> None:
    recording, _ = watch(0.1, slow_ms=300)
    gpu = recording.find(f"gpu:{UUIDS[0]}", "gpu.utilisation")
    core = recording.find("core:0", "cpu.user")
    assert gpu is not None
    assert core is not None
    meanwhile = (core.before_ns > gpu.before_ns[0]) & (core.after_ns < gpu.after_ns[0])
    assert gpu.after_ns[0] - gpu.before_ns[0] > 0.6e9
    assert meanwhile.any()


def test_a_driver_that_never_answers_is_left_behind_and_named(watch: Watch) -> None:
    recording, end = watch(0.5, first=("node", "memory.free"), slow_ms=600_000)
    assert end["problem"] is None
    assert dict(recording.unread())["nvml"] == "its last reading never came back"
    assert recording.find("core:0", "cpu.user") is not None


def test_contexts_of_others_are_told_from_those_of_ranks(watch: Watch) -> None:
    recording, _ = watch(pids=f"1,{os.getpid()}")
    assert max(raw(recording, 0, "gpu.processes")) == 2
    assert max(raw(recording, 0, "gpu.processes.foreign")) == 1


def test_processes_that_a_container_hides_may_be_the_ranks_own(tmp_path: Path) -> None:
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "stat").write_text("5 (x) S 1 0")
    (tmp_path / "self" / "ns").mkdir(parents=True)
    namespace = tmp_path / "self" / "ns" / "pid"
    namespace.symlink_to("pid:[4026532000]")
    assert strangers([5], [7], tmp_path) == 1
    assert strangers([5, 91234], [7], tmp_path) is None
    namespace.unlink()
    namespace.symlink_to("pid:[4026531836]")  # hidden from this user, or gone
    assert strangers([5, 91234], [7], tmp_path) == 2


def test_power_and_use_are_of_the_gpus_that_the_ranks_may_use(
    tmp_path: Path,
) -> None:
    recording, _ = observe(
        tmp_path / "samples.bin",
        1.0,
        ranks={0: os.getpid()},
        devices={0: UUIDS[1]},
        rates={"nvml": 10.0},
        environment={
            **os.environ,
            "LD_LIBRARY_PATH": library(),
            "STUB_GPUS": "4",
            "STUB_PIDS": "1",
            "STUB_SLOWED": "64",  # of another one
        },
        first=(f"gpu:{UUIDS[1]}", "gpu.utilisation"),
    )
    series = recording.find(f"gpu:{UUIDS[1]}", "gpu.energy")
    assert series is not None
    span = Span(int(series.times_ns[0]), int(series.times_ns[-1]))
    use = NodeUse("here", recording, (0,), span)
    assert gpu_share([use]) == pytest.approx(0.15)
    off = unsure(recording, 1, "gpu.energy")
    assert power_w([use]) == pytest.approx(200.0, rel=off)
    (seen,) = hardware_evidence([use], [], 0)
    assert (seen.foreign_contexts, seen.slowed) == (0, {})


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, UUIDS[:3]),
        ("", []),
        ("1", UUIDS[1:2]),
        ("2,0", [UUIDS[2], UUIDS[0]]),
        ("0,7,1", UUIDS[:1]),
        ("-1,0", []),
        ("GPU-abc00002", UUIDS[2:3]),
        ("GPU-abc", []),
        ("0,0", UUIDS[:1]),
    ],
)
def test_visible_devices_mean_what_cuda_makes_of_them(
    setting: str | None, expected: list[str]
) -> None:
    assert visible(setting, UUIDS[:3]) == expected


def test_used_are_the_devices_of_all_ranks_together() -> None:
    assert used_by({0: "2", 1: "0"}, UUIDS[:3]) == [UUIDS[0], UUIDS[2]]
    assert used_by({}, UUIDS[:3]) == UUIDS[:3]


STUDY = """
title = "On a stand-in"
[matrix]
workload = "nothing"
framework = "null"
[measure]
trials = 1
warmup = "3 steps"
until = "1 s"
"""


def test_trials_beside_a_stand_in_are_no_measurements(tmp_path: Path) -> None:
    (tmp_path / "stub.toml").write_text(STUDY, encoding="utf-8")
    place = {"LD_LIBRARY_PATH": library(), "STUB_GPUS": "2"}
    done = bakeoff("run", "stub.toml", "--name", "r", cwd=tmp_path, **place)
    assert "Traceback" not in done.stderr
    (outcome,) = (tmp_path / "runs" / "r" / "cells").glob("*/trial-1/outcome.json")
    assert json.loads(outcome.read_text(encoding="utf-8"))["origin"] == "stand-in"
    shown = bakeoff("show", "r", cwd=tmp_path)
    assert "of another origin than measured left out" in " ".join(shown.stdout.split())
