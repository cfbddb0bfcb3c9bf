"""The files of a run directory, and what is kept of runs outside of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.run.setup import read_plan
from harness.run.unattended import queue
from harness.sections.contract import gather
from harness.store.dataset import Dataset
from harness.store.events import event_lines, rank_tail
from harness.store.layout import RunPaths, TrialPaths
from harness.store.run_directory import due, trial_folders
from harness.store.run_directory.identity import identity
from harness.store.samples.recording import read_recording
from harness.worker import job
from reports.exports.results_file import read_results_file
from tests.gauntlet.parsers.parser import Parser, in_run, laid, of_run, read_whole, small, texts
from tests.gauntlet.parsers.programs import JOBS


def _run_file(
    name: str,
    pattern: str,
    read: Callable[[RunPaths], object] = read_whole,
    share: float = 0.15,
    modules: tuple[str, ...] = (),
) -> Parser:
    known = (
        "harness/store/record_readers/run_reader",
        "harness/store/record_readers/trial_reader",
        "harness/store/typed",
        "harness/store/contained",
    )
    return Parser(
        name,
        of_run(pattern),
        in_run(pattern, read),
        (*known, *modules),
        is_json=True,
        share=share,
    )


def _due(paths: RunPaths) -> object:
    return due.read_due(paths).count()


def _queried(paths: RunPaths) -> object:
    return Dataset([paths.root]).sql("SELECT count(*) FROM trials")


def _findings_asked(paths: RunPaths) -> object:
    run: Any = type("Run", (), {"directory": str(paths.root)})()
    return gather._asked(run)


def _tail(data: bytes, folder: Path) -> object:
    trial = TrialPaths(folder / "trial")
    laid(data, folder, "trial/events.0.jsonl")
    return rank_tail.read_rank_tail(trial, 0), rank_tail.has_stand_in(trial, [0])


def _job(data: bytes, folder: Path) -> object:
    return job.read(str(laid(data, folder, "job.json")))


PARSERS = (
    Parser(
        "event files",
        of_run("cells/*/*/events.0.jsonl"),
        lambda data, _: event_lines.read_event_files([data, data]),
        (
            "harness/store/events/event_lines",
            "harness/store/events/known_events",
            "harness/store/events/window_lines",
        ),
        is_json=True,
        share=0.2,
    ),
    Parser(
        "ends of event files",
        of_run("cells/*/*/events.0.jsonl"),
        _tail,
        ("harness/store/events/rank_tail", "harness/store/json_text"),
        is_json=True,
        share=0.5,
    ),
    Parser(
        "samples",
        of_run("cells/*/*/samples.*.bin"),
        lambda data, folder: read_recording(laid(data, folder, "samples.n.bin")),
        ("harness/store/samples/recording", "harness/store/samples/samples_format"),
        share=0.3,
    ),
    Parser(
        "outcomes",
        of_run("cells/*/*/outcome.json"),
        in_run("cells/*/trial-1/outcome.json", lambda paths: trial_folders.outcomes(paths)),
        (
            "harness/store/run_directory/trial_folders",
            "harness/store/outcome",
            "harness/store/seals",
        ),
        is_json=True,
        share=0.5,
    ),
    _run_file("run.json", "run.json", identity, modules=("harness/store/run_directory/identity",)),
    _run_file("run.json, the run read", "run.json"),
    _run_file("plan.json, the run read", "plan.json"),
    _run_file("plan.json, to resume", "plan.json", read_plan, modules=("harness/run/setup",)),
    _run_file("provenance.json", "provenance.json"),
    _run_file("environments/*.json", "environments/*.json"),
    _run_file("gate/*.json", "gate/*.json", modules=("harness/store/gate_results",)),
    _run_file("outcome.json, the run read", "cells/*/trial-1/outcome.json"),
    _run_file("job.json, the run read", "cells/*/trial-1/job.json"),
    _run_file(
        "log.jsonl",
        "log.jsonl",
        _due,
        modules=("harness/store/run_directory/due", "harness/store/run_directory/session_log"),
    ),
    _run_file(
        "events, queried",
        "cells/*/trial-1/events.0.jsonl",
        _queried,
        0.005,
        ("harness/store/sql/tables", "harness/store/events/rank_streams"),
    ),
    _run_file(
        "results.json",
        "results.json",
        lambda paths: read_results_file(paths.root / "results.json"),
        0.05,
        ("reports/exports/results_file",),
    ),
    Parser(
        "study.toml",
        of_run("study.toml"),
        in_run("study.toml", _findings_asked),
        ("harness/sections/contract/gather",),
        share=0.3,
    ),
    Parser(
        "jobs.json",
        texts(json.dumps({"version": 1, "jobs": [vars(one) for one in JOBS]})),
        lambda data, folder: queue.jobs(RunPaths(laid(data, small(folder), "jobs.json").parent)),
        ("harness/run/unattended/queue",),
        is_json=True,
    ),
    Parser(
        "job.json, by its rank",
        of_run("cells/*/*/job.json"),
        _job,
        ("harness/worker/job",),
        is_json=True,
        refuses=(ValueError, KeyError, TypeError, AttributeError, RecursionError),
    ),
)
