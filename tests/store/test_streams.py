"""What ranks said is the same whether a database or a loop over lines reads it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from harness.store import event_lines
from harness.store.dataset import Dataset
from harness.store.layout import TrialPaths
from harness.store.streams import read_streams
from tests.runs import RecordedCell, write_run


@pytest.fixture
def dataset(tmp_path):
    return Dataset([write_run(tmp_path, [RecordedCell(), RecordedCell(framework="jax")])])


def read(dataset):
    told = [stream for _, streams in read_streams(dataset.trials) for stream in streams]
    return [
        {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in dataclasses.asdict(stream).items()
        }
        for stream in told
    ]


def both_ways(dataset, monkeypatch):
    by_lines = read(dataset)
    monkeypatch.setattr(event_lines, "MOST_BYTES", -1)
    return by_lines, read(dataset)


def test_lines_and_database_agree(dataset, monkeypatch):
    by_lines, by_database = both_ways(dataset, monkeypatch)
    assert by_lines == by_database
    assert len(by_lines[0]["steps"]) > 10


def test_lines_and_database_skip_what_a_killed_rank_left_torn(dataset, monkeypatch):
    events = TrialPaths(dataset.trials[0].directory).events(0)
    whole = events.read_text()
    events.write_text(whole + '{"event": "window", "phase": "meas')
    by_lines, by_database = both_ways(dataset, monkeypatch)
    assert by_lines == by_database


def test_a_rank_that_said_nothing_is_no_fault(dataset, monkeypatch):
    TrialPaths(dataset.trials[0].directory).events(0).write_text("")
    by_lines, by_database = both_ways(dataset, monkeypatch)
    assert by_lines == by_database
