"""Write cells as a trace of Chrome's format, which Perfetto's viewer and others open.

One process is one cell; its threads are its layers, its phases and its traced steps; its counters
are the channels that were sampled. Times are microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from harness.analysis.results import Results
from reports.exports.tracks import Process, processes

Event = dict[str, Any]


def of_results(results: Results) -> str:
    """Write all cells of the runs."""
    events = [
        event for number, one in enumerate(processes(results), 1) for event in _events(one, number)
    ]
    about = {"title": results.title, "runs": ", ".join(run.name for run in results.runs)}
    whole = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}
    return json.dumps(whole, ensure_ascii=True, separators=(",", ":")) + "\n"


def _events(of: Process, pid: int) -> Iterator[Event]:
    yield _metadata("process_name", pid, 0, {"name": of.name})
    yield _metadata("process_labels", pid, 0, {"labels": of.label})
    yield _metadata("process_sort_index", pid, 0, {"sort_index": pid})
    for tid, track in enumerate(of.tracks, 1):
        yield _metadata("thread_name", pid, tid, {"name": track.name})
        yield _metadata("thread_sort_index", pid, tid, {"sort_index": tid})
        for one in track.slices:
            yield {
                "ph": "X",
                "name": one.name,
                "cat": one.category,
                "pid": pid,
                "tid": tid,
                "ts": one.start_ns / 1e3,
                "dur": one.length_ns / 1e3,
                "args": dict(one.about),
            }
    for counter in of.counters:
        for at_ns, value in counter.points:
            yield {
                "ph": "C",
                "name": counter.name,
                "pid": pid,
                "tid": 0,
                "ts": at_ns / 1e3,
                "args": {counter.unit: value},
            }


def _metadata(name: str, pid: int, tid: int, args: Event) -> Event:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args}
