"""Divide steps by the threads of XLA's CPU backend in an XSpace: what ends later than it began."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.worker.attribution import xspace
from harness.worker.attribution.marks import GAPS, OF_UPDATE, STEP, Place
from harness.worker.attribution.traced import divided
from tests.worker.test_device_plane import BACKWARD, FORWARD, Event, of, plane, program
from workloads.tinycnn import WORKLOAD

UPDATED, GAP = Place("", OF_UPDATE), Place("", GAPS)


def shares(folder: Path, threads: int, *lines: list[Event]) -> dict[Place, float]:
    told = {f"tf_XLAEigen/{number}": events for number, events in enumerate(lines)}
    host = plane(xspace.HOST, {"python": [(STEP, 0, 1000, b"")], **told})
    (folder / "host.xplane.pb").write_bytes(host + program())
    trace = xspace.read(str(folder))
    found = divided(trace, WORKLOAD.network, "a trace", [], threads=threads)
    return {one.place: round(one.shares[0], 6) for one in found.parts}


def test_a_copy_whose_other_blocks_wait_for_the_thread_takes_what_all_of_them_take(tmp_path: Path):
    copy, end = ("copy.6", 100, 50, of("copy.6")), ("end: copy.6", 900, 1, b"")
    fusion = ("loop_add_fusion", 150, 600, of("loop_add_fusion"))
    found = shares(tmp_path, 1, [copy, fusion, end])
    assert found == {UPDATED: 0.15, BACKWARD: 0.6, GAP: 0.25}  # 3 MiB are three blocks


def test_an_end_that_was_not_noted_is_not_that_of_the_next_time(tmp_path: Path):
    first, second = (("copy.5", start, 50, of("copy.5")) for start in (100, 500))
    found = shares(tmp_path, 1, [first, second, ("end: copy.5", 560, 1, b"")])
    assert found == {UPDATED: 0.1, GAP: 0.9}  # 16x8 numbers are one block: nothing is left of it


@pytest.mark.parametrize(("threads", "forward"), [(1, 0.3), (2, 0.35)])
def test_what_runs_in_the_pool_shares_with_others_only_where_there_are_threads(
    threads: int, forward: float, tmp_path: Path
):
    begun = ("cudnn-conv.1", 100, 10, of("cudnn-conv.1"))
    fusion = ("loop_add_fusion", 200, 100, of("loop_add_fusion"))
    ended = ("end: cudnn-conv.1", 500, 1, b"")
    found = shares(tmp_path, threads, [begun, fusion], [ended])
    assert found == {FORWARD: forward, BACKWARD: round(0.4 - forward, 6), GAP: 0.6}
