"""`status` counts as other commands do, names what is damaged, and says what a run is worth."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.cli.verbs.status import look
from harness.launch.queue_answers import JobState
from harness.run import setup, trust
from harness.run.unattended import queue
from harness.store.layout import RunPaths, TrialName
from harness.store.samples import samples_format
from tests.cli.command import bakeoff
from tests.runs import Behaviour, RecordedCell, Recording, write_run

# In each trial at another window, so that it is no doing of the program's.
STALLED = {block: Behaviour(window_noise=0.004, stall_at=8 * block) for block in range(1, 7)}


def status(at: Path, *more: str):
    return bakeoff("status", "told", *more, cwd=at)


def test_a_run_whose_trials_were_all_rejected_is_no_success(tmp_path: Path) -> None:
    cell = RecordedCell(behaviours=STALLED)
    paths = RunPaths(write_run(tmp_path / "runs", [cell], Recording(name="told")))
    for block in STALLED:
        samples = paths.trial(cell.key, TrialName(block)).samples("node0")
        samples.write_bytes(samples_format.header(node="node0"))
    ended = status(tmp_path)
    assert ended.returncode == 1
    assert "None of 6 trials counts: 6 stalled." in ended.stdout
    assert "Why: bakeoff show" in ended.stdout


def test_a_run_that_is_fine_says_so_by_its_exit_code_alone(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", [RecordedCell()], Recording(name="told"))
    ended = status(tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[0].endswith("6 of 6 planned trials done, 0 left.")
    assert len(ended.stdout.splitlines()) == 1


def test_every_command_counts_a_cancelled_run_alike(tmp_path: Path) -> None:
    cut = RecordedCell(outcomes=dict.fromkeys(range(3, 7), "cancelled"))
    write_run(tmp_path / "runs", [cut], Recording(name="told"))
    told = json.loads(status(tmp_path, "--json").stdout)
    assert (told["total"], told["done"], told["left"], told["attempts"]) == (6, 2, 4, 6)
    shown = " ".join(bakeoff("show", "told", cwd=tmp_path).stdout.split())
    assert f"The run is not complete: {told['counts']}." in shown
    (listed,) = json.loads(bakeoff("list", "runs", "--json", cwd=tmp_path).stdout)
    assert (listed["planned"], listed["done"], listed["left"]) == (6, 2, 4)


@pytest.mark.parametrize(
    ("waiting", "left"), [("none", [0, 4]), ("8", [0, 4]), ("7", [4, 0])], ids=str
)
def test_a_trial_that_several_jobs_were_to_run_is_left_to_one_of_them(
    waiting: str, left: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = RecordedCell(outcomes=dict.fromkeys(range(3, 7), "cancelled"))
    paths = RunPaths(write_run(tmp_path, [cell], Recording(name="told")))
    jobs = [
        {"number": n, "job": job, "nodes": 1, "minutes": 5, "keys": [cell.key]}
        for n, job in ((1, "7"), (2, "8"))
    ]
    paths.jobs.write_text(json.dumps({"version": 1, "jobs": jobs}), encoding="utf-8")
    told = json.loads(paths.run.read_text(encoding="utf-8"))
    told |= {"id": "told-1", "directory": paths.root.stat().st_ino}
    paths.run.write_text(json.dumps(told), encoding="utf-8")
    for job in ("7", "8"):
        trust.remember_job(paths, job)
    monkeypatch.setattr(setup, "read_plan", lambda _: SimpleNamespace(platform=None))
    known = {waiting: JobState("PENDING", "0:00", "Resources")}
    monkeypatch.setattr(
        queue,
        "states",
        lambda _, some: {one.job: known[one.job] for one in some if one.job in known},
    )
    found = look(paths.root)
    assert [one.left for one in found.jobs] == left
    assert sum(one.left for one in found.jobs) == found.left


@pytest.mark.parametrize("file", ["outcome.json", "log.jsonl", "provenance.json"])
def test_what_is_damaged_is_named(tmp_path: Path, file: str) -> None:
    cell = RecordedCell()
    paths = RunPaths(write_run(tmp_path / "runs", [cell], Recording(name="told")))
    place = paths.root / file
    if file == "outcome.json":
        place = paths.trial(cell.key, TrialName(1)).outcome
    place.write_text("cut of")
    ended = status(tmp_path)
    assert f"{file}" in ended.stdout
    assert "damaged" in ended.stdout
    assert ended.returncode == (1 if file == "outcome.json" else 0)
