"""Cells as traces: aligned on their steps, a track a layer, in formats that others publish."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harness.worker.attribution import traced_steps
from harness.worker.attribution.traced_steps import Operation, Step
from tests.cli.command import bakeoff
from tests.reports.trace_format import faults

RECORDED = Path(__file__).parents[1] / "store" / "recorded"
HTA = os.environ.get("BAKEOFF_HTA_PYTHON")
"""An interpreter that has HolisticTraceAnalysis."""
CONV = ("conv1", "forward", "conv <b>2d", "float32", "16x3")
PAD = ("conv1", "layout copy", "pad", "float32", "16x3")
UPDATE = ("", "update", "sgd", "float32", "")


def step(number: int, start: int, end: int, *operations: tuple[Any, int, int]) -> Step:
    return Step(number, start, end, [Operation(*one) for one in operations])


LONG = [step(3, 1000, 9000, (CONV, 1000, 5000), (PAD, 2000, 3000), (UPDATE, 6000, 8000))]
TWO = [
    step(0, 100, 2100, (CONV, 100, 1100), (PAD, 600, 1600), (UPDATE, 1600, 2000)),
    step(1, 2200, 4200, (CONV, 2300, 3200), (UPDATE, 3300, 4100)),
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Give the recorded run of two cells as if its jobs had kept some steps."""
    copy = tmp_path / "attributed"
    shutil.copytree(RECORDED / "attributed", copy)
    for cell, steps in zip(sorted((copy / "cells").iterdir()), (TWO, LONG), strict=True):
        traced_steps.write(str(cell / "attribution" / "traced.json"), "a trace", steps)
    return copy


def trace(run: Path) -> tuple[list[dict[str, Any]], str]:
    told = bakeoff("export", str(run), "--to", "trace", cwd=run.parent)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)["traceEvents"], told.stdout


def of_threads(events: list[dict[str, Any]], name: str) -> list[list[dict[str, Any]]]:
    """Give the slices of each thread of that name."""
    threads = [
        (one["pid"], one["tid"])
        for one in events
        if one["name"] == "thread_name" and one["args"]["name"] == name
    ]
    slices = [one for one in events if one["ph"] == "X"]
    return [[one for one in slices if (one["pid"], one["tid"]) == each] for each in threads]


def test_a_trace_fits_the_published_format_and_has_a_process_for_each_cell(run: Path) -> None:
    events, text = trace(run)
    assert faults(text) == []
    named = [one["args"]["name"] for one in events if one["name"] == "process_name"]
    assert len(named) == len(set(named)) == 2
    assert len(of_threads(events, "phases of the trial")) == 2
    assert len(of_threads(events, "conv1")) == 2
    (first, second) = of_threads(events, "update")
    assert sorted([len(first), len(second)]) == [1, 2]
    assert {one["args"]["type"] for one in first} == {"float32"}


def test_steps_of_all_cells_begin_at_once_where_the_first_measured_steps_do(run: Path) -> None:
    events, _ = trace(run)
    steps = of_threads(events, "traced steps")
    begun = [[one["ts"] for one in some] for some in steps]
    assert len({some[0] for some in begun}) == 1
    assert sorted(len(some) for some in begun) == [1, 2]
    apart = [after - before for some in begun for before, after in pairwise(some)]
    assert min(apart) > 8.0  # µs: the longest step of all
    for phases in of_threads(events, "phases of the trial"):
        measured = [one["ts"] for one in phases if one["name"] in ("measure", "turn 1")]
        assert measured[0] == pytest.approx(begun[0][0], abs=1e-3)


def test_operations_of_a_layer_that_run_at_once_lie_on_tracks_beside_each_other(run: Path) -> None:
    events, _ = trace(run)
    assert [len(some) for some in of_threads(events, "conv1 (2)")] == [1]


def test_channels_that_were_sampled_are_counters_and_cells_without_traces_say_why(
    tmp_path: Path,
) -> None:
    shutil.copytree(RECORDED / "measured", tmp_path / "measured")
    events, text = trace(tmp_path / "measured")
    assert faults(text) == []
    counters = {one["name"] for one in events if one["ph"] == "C"}
    assert any(name.startswith("cores busy: ") for name in counters)
    labels = [one["args"]["labels"] for one in events if one["name"] == "process_labels"]
    assert all("nothing attributed its step" in one for one in labels)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda whole: whole.update(version=2), "version 2"),
        (lambda whole: whole.update(kinds=[]), "out of bounds"),
        (lambda whole: whole["steps"][0].update(length_ns=10), "ends after it"),
        (lambda whole: whole["steps"][0].update(length_ns=2**63 - 1), "takes 9223372036854775807"),
        (lambda whole: whole["steps"][0].update(length_ns=-1, operations=[]), "takes -1 ns"),
        (lambda whole: whole["steps"][0].update(operations="none"), "operations"),
    ],
)
def test_steps_that_make_no_sense_are_not_shown_and_the_reason_is(
    run: Path, damage: Callable[[Any], None], says: str
) -> None:
    file = sorted(run.glob("cells/*/attribution/traced.json"))[0]
    whole = json.loads(file.read_text())
    damage(whole)
    file.write_text(json.dumps(whole))
    events, text = trace(run)
    assert faults(text) == []
    labels = [one["args"]["labels"] for one in events if one["name"] == "process_labels"]
    assert [says in one for one in labels].count(True) == 1


def test_thousands_of_operations_at_once_are_divided_among_few_tracks(run: Path) -> None:
    most = traced_steps.MOST_OPERATIONS
    file = sorted(run.glob("cells/*/attribution/traced.json"))[0]
    at_once = step(0, 0, 2 * most, *((CONV, at, at + most) for at in range(most)))
    traced_steps.write(str(file), "a forged trace", [at_once])
    events, text = trace(run)
    assert faults(text) == []
    named = [one["args"]["name"] for one in events if one["name"] == "thread_name"]
    assert "conv1 (64)" in named
    assert "conv1 (65)" not in named
    shown = sum(one["ph"] == "X" and one["name"] == CONV[2] for one in events)
    (told,) = (one for one in named if "left out" in one)
    of_the_other_cell = 1
    assert f"({most - (shown - of_the_other_cell)} more that ran at once" in told


@pytest.mark.parametrize("moment", [-(2**63), 2**63 - 1])
def test_phases_at_moments_that_no_viewer_can_show_are_left_out(run: Path, moment: int) -> None:
    for file in run.glob("cells/*/trial-*/events.0.jsonl"):
        events = [json.loads(line) for line in file.read_text().splitlines()]
        for one in events:
            if one["event"] == "window" and one["phase"] == "warm-up":
                one["start"] = moment
            if one["event"] == "phase" and one["name"] == "close":
                one["t"] = moment
        file.write_text("\n".join(map(json.dumps, events)) + "\n")
    events, text = trace(run)
    assert faults(text) == []
    assert all(0 <= one["ts"] < 2**62 / 1e3 for one in events)


def test_the_checker_tells_what_does_not_fit_the_format() -> None:
    good = {"ph": "X", "name": "a", "cat": "b", "pid": 1, "tid": 1, "ts": 0, "dur": 5, "args": {}}
    wrong: list[Any] = [
        {**good, "ts": -1},
        {**good, "dur": None},
        {**good, "ph": "Z"},
        {**good, "ph": "M", "name": "thread"},
        {**good, "ph": "C", "args": {"%": "much"}},
        {**good, "pid": "one"},
        "event",
    ]
    for one in wrong:
        assert faults(json.dumps({"traceEvents": [one]})), one
    overlapping = [good, {**good, "ts": 3}]
    assert "after the one around it" in faults(json.dumps({"traceEvents": overlapping}))[0]
    assert faults(json.dumps({"traceEvents": [good, {**good, "ts": 3, "dur": 2}]})) == []
    assert faults("[]")


def test_of_many_steps_the_quickest_whole_ones_are_kept_and_of_a_long_one_its_longest() -> None:
    most = traced_steps.MOST_OPERATIONS
    many = [step(number, 0, 100 - number, *[(CONV, 0, 1)] * (most // 3)) for number in range(5)]
    assert [one.number for one in traced_steps.chosen(many)] == [2, 3, 4]
    long = step(7, 0, most + 5, *[(CONV, at, at + 1 + at % 2) for at in range(most + 5)])
    (kept,) = traced_steps.chosen([long])
    assert (len(kept.operations), kept.left_out) == (most, 5)
    assert sum(one.end - one.start == 2 for one in kept.operations) == (most + 5) // 2


def test_a_native_trace_is_read_back_by_perfettos_own_classes(run: Path) -> None:
    classes = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
        reason="the perfetto wheel is missing; pip install 'bakeoff[perfetto]'",
    )
    told = bakeoff("export", str(run), "--to", "perfetto", "--output", "t.pftrace", cwd=run.parent)
    assert told.returncode == 0, told.stderr
    read = classes.Trace.FromString((run.parent / "t.pftrace").read_bytes())
    tracks = [one.track_descriptor for one in read.packet if one.HasField("track_descriptor")]
    assert sum(one.HasField("process") for one in tracks) == 2
    assert {"conv1", "update", "traced steps"} <= {one.name for one in tracks}
    events = [one.track_event for one in read.packet if one.HasField("track_event")]
    kinds = [one.type for one in events]
    slices = [one for one in trace(run)[0] if one["ph"] == "X"]
    assert kinds.count(classes.TrackEvent.TYPE_SLICE_BEGIN) == len(slices)
    assert kinds.count(classes.TrackEvent.TYPE_SLICE_END) == len(slices)
    assert {one["name"] for one in slices} == {one.name for one in events if one.name}


def test_without_its_wheel_perfettos_own_format_says_what_to_install(run: Path) -> None:
    blocked = str(_blocking(run.parent))
    asked = ("export", str(run), "--to", "perfetto", "--output", "t")
    told = bakeoff(*asked, cwd=run.parent, PYTHONPATH=blocked)
    assert told.returncode == 1
    assert "pip install 'bakeoff[perfetto]'" in told.stderr


def _blocking(folder: Path) -> Path:
    """Make a folder whose ``perfetto`` is no package of protobuf classes."""
    (folder / "blocked").mkdir()
    (folder / "blocked" / "perfetto.py").touch()
    return folder / "blocked"


def test_holistic_trace_analysis_reads_a_trace(run: Path) -> None:
    if HTA is None:
        pytest.skip(
            "HolisticTraceAnalysis is not asked for; name an interpreter that has it in "
            "BAKEOFF_HTA_PYTHON"
        )
    events, text = trace(run)
    (run.parent / "trace.json").write_text(text)
    code = (
        "import sys\nfrom hta.common.trace import Trace\n"
        "t = Trace(trace_files={0: sys.argv[1]}, trace_dir='.')\nt.parse_traces()\n"
        "print('read', len(t.get_trace(0)))"
    )
    done = subprocess.run(
        [HTA, "-c", code, "trace.json"], cwd=run.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"read {sum(one['ph'] == 'X' for one in events)}" in done.stdout
