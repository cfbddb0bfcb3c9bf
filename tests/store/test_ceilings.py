"""Read what kernels reached at most from their windows, and what a run keeps of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import DamagedFile
from harness.store.layout import RunPaths, TrialPaths
from harness.store.record_readers.ceilings import REFUSED, Reached, reached_in, read_ceilings

GEMM = {"event": "ceiling", "kernel": "gemm", "unit": "FLOP", "work": 2e9, "why": ""}
TRIAD = {**GEMM, "kernel": "triad", "unit": "bytes", "work": 3e8, "cache_bytes": 1 << 25}
UNDER = {
    "framework": "torch",
    "environment": "digest",
    "device": "cpu",
    "precision": "fp32",
    "threads": None,
}
REACHED = {"kernel": "gemm", "unit": "FLOP", "per_s": 1e11, "cache_bytes": None}
ONE = {"under": UNDER, "reached": REACHED, "measured_in": "r/cells/k/ceilings"}


def window(seconds: float, steps: int = 1, phase: str = "measure") -> dict[str, Any]:
    end = round(seconds * 1e9)
    return {"event": "window", "phase": phase, "first": 0, "steps": steps, "start": 0, "end": end}


def reached(root: Path, *events: dict[str, Any]) -> tuple[Reached, ...]:
    trial = TrialPaths(root)
    trial.events(0).write_text("\n".join(map(json.dumps, events)))
    return reached_in(trial)


def test_the_best_window_of_each_kernel_counts_and_none_of_its_warm_up(tmp_path: Path) -> None:
    found = reached(
        tmp_path,
        GEMM,
        window(0.001, phase="warm-up"),
        window(0.5),
        window(0.25),
        TRIAD,
        window(0.1, steps=10),
    )
    assert [(one.kernel, one.per_s, one.cache_bytes) for one in found] == [
        ("gemm", 8e9, None),
        ("triad", 3e10, 1 << 25),
    ]


def test_a_kernel_that_the_framework_lacks_is_refused_and_damaged_lines_have_no_ceiling(
    tmp_path: Path,
) -> None:
    lacking = {**GEMM, "work": None, "why": "needs a device"}
    (found,) = reached(tmp_path, lacking, window(0.5), {"event": "ceiling"}, window(0.0))
    assert (found.kernel, found.unit) == ("gemm", REFUSED)


def kept(root: Path, **changes: Any) -> RunPaths:
    file = {"version": 1, "ceilings": [{**ONE, "measured_wall_ns": 1, **changes}]}
    (root / "ceilings.json").write_text(json.dumps(file))
    return RunPaths(root)


def test_a_run_without_ceilings_knows_none(tmp_path: Path) -> None:
    assert read_ceilings(RunPaths(tmp_path)) == ()
    (one,) = read_ceilings(kept(tmp_path))
    assert one.reached.per_s == 1e11


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"reached": {**REACHED, "per_s": 0.0}}, "says no rate"),
        ({"reached": {**REACHED, "unit": "images"}}, "says no rate"),
        ({"reached": {**REACHED, "per_s": "fast"}}, "a number"),
        ({"under": {}}, "framework"),
    ],
)
def test_what_is_damaged_is_named(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(DamagedFile, match=why):
        read_ceilings(kept(tmp_path, **changes))
