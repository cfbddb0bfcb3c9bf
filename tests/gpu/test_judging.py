"""What a GPU day makes of marks and readings that are not as they should be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import host
from tests.gpu.day import Day
from tests.gpu.nvidia_smi import Reading
from tests.gpu.steps import attribution, ceilings
from tests.gpu.steps.cells import selection
from tests.gpu.steps.probe import differences
from tests.gpu.steps.windows import WORKLOADS, Window, judge

PLAIN = {"steps": 30, "seconds": 1.5}


def judged(window: Window, **told: Any) -> list[str]:
    marks = {"by": "CUDA events", "plain": PLAIN, "control": {"left_s": 0.04}, "driver": None}
    return judge([window] * 5, {**marks, **told}, is_judged=True)[1]


def test_windows_as_long_as_the_devices_work_are_fine() -> None:
    assert judged(Window(1, 0.05, 0.0499, 1e-5)) == []


def test_a_clock_that_stops_before_the_device_is_a_fault() -> None:
    (fault,) = judged(Window(1, 0.05, 0.052, 1e-5))
    assert fault == "5 windows end before the device does, by 2 ms"


def test_a_window_much_longer_than_the_devices_work_is_a_fault() -> None:
    (fault,) = judged(Window(1, 0.05, 0.045, 1e-5))
    assert fault == "windows are 5 ms longer than the device's (median)"


def test_a_sync_that_does_not_wait_is_a_fault() -> None:
    (fault,) = judged(Window(1, 0.05, None, 0.02))
    assert fault == "sync() returns 20 ms before the device is idle"


def test_a_driver_that_cannot_be_asked_is_a_fault() -> None:
    (fault,) = judged(Window(1, 0.05, 0.0499, None), driver="cuInit gives CUDA error 100")
    assert fault == "the driver could not be asked: cuInit gives CUDA error 100"


def test_steps_that_take_longer_in_the_loop_are_a_fault() -> None:
    (fault,) = judged(Window(1, 0.05, 0.0499, 1e-5), plain={"steps": 30, "seconds": 1.2})
    assert fault == "steps without the loop take 0.800 of the time that it tells"


def division(**shares: float) -> dict[str, Any]:
    """Give a division of tinycnn's step; each layer that multiplies has its parts."""
    layers = ("conv1", "block/conv1", "block/conv2", "conv2", "fc")
    found = {(path, phase): 0.05 for path in layers for phase in ("forward", "backward")}
    found |= {("", name.replace("_", " ")): share for name, share in shares.items()}
    rest = 1 - sum(found.values())
    found["conv1", "forward"] += rest
    gap = [{"name": "not launched yet", "share": 0.75}, {"name": "other", "share": 0.25}]
    parts = [
        {"site": site, "phase": phase, "shares": [share] * 5, "operations": gap}
        for (site, phase), share in found.items()
    ]
    steps = {"step_s": [0.011] * 5, "untraced_s": [0.010] * 4}
    return {"traced_by": "torch.profiler", **steps, "parts": parts}


def test_a_division_says_where_the_time_went() -> None:
    lines, faults = attribution.judge(division(host_gaps=0.2, other=0.01), "tinycnn")
    assert not faults
    assert lines[0] == "5 steps by torch.profiler, +10% with the trace"
    assert {"conv1, forward 34.0%", "backward in all 25.0%", "host gaps in all 20.0%"} <= set(lines)
    assert "of its gaps 75% not launched yet" in lines


def test_a_division_that_leaves_much_without_a_layer_is_a_fault() -> None:
    (fault,) = attribution.judge(division(other=0.06), "tinycnn")[1]
    assert fault == "6.0% of its step carries no layer's mark"
    lines = attribution.judge(division(other=0.06), "tinycnn")[0]
    assert "without a mark: 75% not launched yet" in lines


def test_a_layer_that_multiplies_and_has_no_backward_pass_is_a_fault() -> None:
    told = division()
    told["parts"] = [one for one in told["parts"] if one["site"] not in ("fc", "conv2")]
    (fault,) = attribution.judge(told, "tinycnn")[1]
    assert fault == "no backward pass of conv2, fc"


def test_gpus_are_compared_by_their_uuid() -> None:
    listed = {
        "GPU-1": {"name": "H100", "memory.total": "81559"},
        "GPU-2": {"name": "H100", "memory.total": "81559"},
        "GPU-3": {"name": "H100", "memory.total": "[N/A]"},
    }
    found = [
        {"model": "H100", "memory": "81559 MiB", "uuids": ["GPU-1", "GPU-4"]},
        {"model": "H200", "memory": "139 GiB", "uuids": ["GPU-3"]},
    ]
    assert differences(found, listed) == [
        "GPU-2 is listed by nvidia-smi, not probed",
        "GPU-4 was probed, nvidia-smi does not list it",
        "GPU-3: H200, to nvidia-smi H100",
    ]


def test_missing_packages_are_named_with_the_command_that_fetches_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])
    told = host.prepare(tmp_path / "packages", None)
    assert told is not None
    assert "duckdb>=1.3" in told
    assert "bakeoff pack ours.tar --python 3." in told
    assert "WHEELS=ours/wheels" in told


def test_products_are_held_to_what_the_vendor_states() -> None:
    told = {
        "gemm-bf16-gpu": {"compute": "700 TFLOP/s"},
        "gemm-fp32-gpu": {"compute": "80 TFLOP/s"},
        "gemm-tf32-gpu": {"compute": "100 TFLOP/s"},
        "host-to-device": {"bandwidth": "55 GB/s"},
    }
    lines, faults = ceilings.judged(told, {"fp32": 67.0, "tf32": 495.0, "bf16": 990.0})
    assert "gemm-bf16-gpu: 700 TFLOP/s, 71% of the stated 990 TFLOP/s" in lines
    assert "host-to-device: 55 GB/s" in lines
    assert any("gemm-tf32-gpu: far below" in line for line in lines)
    assert faults == ("gemm-fp32-gpu: 80 TFLOP/s is more than the stated 67 TFLOP/s",)


@pytest.mark.parametrize(
    ("python", "steps", "said"),
    [
        (sys.executable, "nvml,nvlm", "STEPS=nvlm (--only): no step is called so. Did you mean "),
        ("/no/python", "nvml", "PYTHON=/no/python (--python): no program of this name is here."),
    ],
)
def test_what_was_mistyped_is_named_as_it_was_typed(
    tmp_path: Path, python: str, steps: str, said: str
) -> None:
    command = [sys.executable, "-m", "tests.gpu", "--python", python, "--only", steps]
    day = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True)
    assert (day.returncode, said in day.stderr) == (2, True), day.stderr


def test_the_cells_of_a_real_day_can_be_planned(tmp_path: Path) -> None:
    day = Day(sys.executable, tmp_path)
    day.work.mkdir()
    gpu = {"uuid": "GPU-1", "name": "NVIDIA H100 80GB HBM3", "memory.total": "81559"}
    vars(day)["gpus"] = Reading(0, 1, {"GPU-1": gpu, "GPU-2": gpu})
    chosen = selection(day, ("torch", "jax"), {"matrix.workload": WORKLOADS})
    planned = day.bakeoff("plan", *chosen, "--json", limit_s=60)
    cells = planned.json()["cells"]
    assert {one["factors"]["device"] for one in cells} == {"gpu"}
    assert [one["label"] for one in cells if "tinycnn" in one["label"]] == [
        "tinycnn · torch · no compile",
        "tinycnn · torch · compile",
        "tinycnn · jax · compile",
    ]
