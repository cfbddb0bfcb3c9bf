"""Marks around the loop's windows: in their place, and without touching what is timed."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.worker import loop
from harness.worker.job import Span
from tests.gpu.day import SCRIPTS


class Activity:
    """Say in which order it is called."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls
        self.units = {"images": 1.0}
        self.agree = max
        self.parameters = int

    def step(self) -> None:
        self.calls.append("step")

    def sync(self) -> None:
        self.calls.append("sync")

    def values(self) -> dict[str, float]:
        self.calls.append("values")
        return {}


def told_after(
    framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], dict[str, Any]]:
    """Let the timed loop step three windows of an adapter that is marked."""
    calls: list[str] = []

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            calls.append("event")

        def elapsed_time(self, end: Event) -> float:
            return 2.5

    events = SimpleNamespace(Event=Event)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=events))
    monkeypatch.setenv("MARKED_FILE", str(tmp_path / "marks.json"))
    spec = importlib.util.spec_from_file_location("marked", SCRIPTS / "marked_adapter.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    inner = SimpleNamespace(
        versions=dict, facts=dict, close=int, activity=lambda *given: Activity(calls)
    )
    job = SimpleNamespace(framework=framework, factors={"device": "gpu"})
    adapter = module.MarkedAdapter(inner, job)
    activity = adapter.activity(None, None, {})
    said = SimpleNamespace(say=lambda event, **fields: None, flush=lambda: None)
    loop.run(activity, said, warmup=Span(steps=3), until=Span(steps=1))
    in_loop = list(calls)
    adapter.close()
    return in_loop, json.loads((tmp_path / "marks.json").read_text(encoding="utf-8"))


def test_events_surround_each_windows_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, told = told_after("torch", tmp_path, monkeypatch)
    assert " ".join(calls).startswith("event step event sync values event step")
    assert calls.count("event") == 2 * calls.count("sync")
    assert {one["device_s"] for one in told["windows"]} == {0.0025}
    assert len(told["windows"]) == calls.count("sync")
    assert told["plain"] == {"steps": 30, "seconds": 0.0025}


def test_a_framework_whose_stream_is_out_of_reach_has_no_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, told = told_after("jax", tmp_path, monkeypatch)
    assert "event" not in calls
    assert {one["device_s"] for one in told["windows"]} == {None}
    assert told["by"] is None
    assert told["plain"]["seconds"] > 0
