"""These tests hold the quick way of reading event files to what JSON says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from harness.store import event_lines
from harness.store.dataset import Dataset
from harness.store.layout import TrialPaths
from tests.runs import RecordedCell, write_run


@pytest.fixture
def events(tmp_path: Path) -> Path:
    dataset = Dataset([write_run(tmp_path, [RecordedCell()])])
    return TrialPaths(dataset.trials[0].directory).events(0)


def by_json(file: Path, phase: str) -> list[list[int]]:
    told = []
    for line in file.read_text().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event["event"] == "window" and event["phase"] == phase:
            told.append([event[name] for name in ("first", "steps", "start", "end")])
    return told


def agrees(file: Path) -> bool:
    spoken = event_lines.read(file.read_bytes())
    return bool(
        np.array_equal(spoken.measured, by_json(file, "measure"))
        and np.array_equal(spoken.warm_up, by_json(file, "warm-up"))
    )


def test_windows_are_read_as_json_reads_them(events: Path) -> None:
    spoken = event_lines.read(events.read_bytes())
    assert agrees(events)
    assert len(spoken.measured) > 10
    assert spoken.told["units"] == {"images": 16}


def test_compact_lines_are_read_alike(events: Path) -> None:
    events.write_text(events.read_text().replace(": ", ":").replace(", ", ","))
    assert agrees(events)


def test_what_a_killed_rank_left_torn_is_left_out(events: Path) -> None:
    whole = events.read_text()
    events.write_text(whole + '{"event": "window", "phase": "measure", "fir')
    assert agrees(events)


def test_other_lines_between_windows_and_more_keys_do_no_harm(events: Path) -> None:
    lines = events.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if '"measure", "first"' in line) + 3
    lines[at] = lines[at].replace('"first"', '"clock": 7, "first"')
    lines.insert(at, json.dumps({"event": "values", "step": 1, "values": {"loss": 2.5}}))
    events.write_text("\n".join(lines))
    assert agrees(events)


def test_windows_out_of_order_are_sorted(events: Path) -> None:
    expected = by_json(events, "measure")
    lines = events.read_text().splitlines()
    events.write_text("\n".join(reversed(lines)))
    assert event_lines.read(events.read_bytes()).measured.tolist() == expected


@pytest.mark.parametrize("text", ["", "{", '{"event": "window"}\n', "[1, 2]\n"])
def test_a_rank_that_said_nothing_is_no_fault(events: Path, text: str) -> None:
    events.write_text(text)
    spoken = event_lines.read(events.read_bytes())
    assert (len(spoken.measured), len(spoken.warm_up), spoken.told) == (0, 0, {})
