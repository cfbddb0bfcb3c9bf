"""These tests hold what is said of a queue that fails to the difference from one that answers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.errors import DamagedFile, Unavailable
from harness.plan.allocations import Allocation
from harness.platform.platform import Platform
from harness.platform.starting import Launcher
from harness.run.unattended import queue
from harness.run.unattended.queue import JobInQueue, JobState
from harness.store.files import write_json
from harness.store.layout import RunPaths
from harness.store.run_directory.identity import claim, identity
from harness.worker.redaction.places import HIDDEN

SLURM = Platform.model_construct(name="p", launcher=Launcher(name="slurm"))
JOBS = [JobInQueue(n, str(n), 1, 5, ()) for n in (7, 8)]
WANTED = [Allocation(nodes, (f"cell{nodes}",), 3, 1.0) for nodes in (1, 2)]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a program in the place of one of Slurm's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def put(name: str, *lines: str) -> None:
        (folder / name).write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
        (folder / name).chmod(0o755)

    return put


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    """Give the directory of a run that has a name."""
    paths = RunPaths(tmp_path / "r")
    paths.root.mkdir()
    made = {"id": "r-1", "directory": paths.root.stat().st_ino}
    raw = {**made, "payload": "payload", "first": {}, "accepted": {}}
    write_json(paths.run, raw)
    paths.files.write_json(paths.plan, {})
    paths.files.make_folder(paths.payload)
    return paths


def test_jobs_that_slurm_has_forgotten_are_no_error(program) -> None:
    program("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2", "exit 1")
    assert queue.states(SLURM, JOBS) == {}
    program("squeue", "echo '8 PENDING 0:00 Priority'")
    assert queue.states(SLURM, JOBS) == {"8": JobState("PENDING", "0:00", "Priority")}


def test_a_job_that_runs_is_given_no_reason(program) -> None:
    program("squeue", "echo '7 RUNNING 1:53 None'")
    assert queue.states(SLURM, JOBS) == {"7": JobState("RUNNING", "1:53", "")}


@pytest.mark.parametrize("says", ["Unable to contact slurm controller", ""])
def test_a_queue_that_does_not_answer_is_not_taken_for_an_empty_one(program, says: str) -> None:
    program("squeue", f"echo '{says}' >&2", "exit 1")
    with pytest.raises(Unavailable, match=f"squeue ended with 1: {says or 'It printed nothing'}"):
        queue.states(SLURM, JOBS)


def test_a_second_job_that_is_refused_leaves_the_first_and_says_how_to_go_on(
    program, paths: RunPaths
) -> None:
    told = paths.root.parent / "told"
    program("sbatch", f"test -e {told} && {{ echo 'Invalid account' >&2; exit 1; }}",
            f"touch {told}", "echo '101;cluster'")  # fmt: skip
    with pytest.raises(Unavailable) as refused:
        queue.submit(paths, SLURM, WANTED)
    assert str(refused.value) == (
        "sbatch ended with 1: Invalid account\n"
        f"In the queue already: 101. Let them end, or take them back (bakeoff cancel {paths.root})"
        f"; then submit what is left: bakeoff resume {paths.root} --detach"
    )
    assert [(one.job, one.keys) for one in queue.jobs(paths)] == [("101", ("cell1",))]


def test_a_job_s_script_keeps_no_secret_and_the_queue_gets_it_whole(
    program, paths: RunPaths
) -> None:
    told = paths.root.parent / "told"
    program("sbatch", f'for file; do :; done; cat "$file" > {told}; echo 101')
    settings = {**SLURM.launcher.settings, "options": "--export=ALL,HF_TOKEN=hunter2"}
    launcher = SLURM.launcher.model_copy(update={"settings": settings})
    queue.submit(paths, SLURM.model_copy(update={"launcher": launcher}), WANTED[:1])
    assert "HF_TOKEN=hunter2" in told.read_text()
    script = paths.job_script(1).read_text()
    assert script == told.read_text().replace("hunter2", HIDDEN)


def test_a_copied_run_has_none_of_its_originals_jobs(program, paths: RunPaths) -> None:
    program("sbatch", "echo 101")
    queue.submit(paths, SLURM, WANTED[:1])
    copy = RunPaths(Path(shutil.copytree(paths.root, paths.root.with_name("copy"))))
    assert [one.job for one in queue.jobs(paths)] == ["101"]
    assert queue.jobs(copy) == ()
    claim(copy)
    assert queue.jobs(copy) == ()
    assert identity(copy).id != identity(paths).id
    renamed = RunPaths(paths.root.rename(paths.root.with_name("renamed")))
    claim(renamed)
    assert [one.job for one in queue.jobs(renamed)] == ["101"]
    assert identity(renamed).id == "r-1"


def test_where_nothing_was_submitted_that_is_said(program, paths: RunPaths) -> None:
    program("sbatch", "echo 'Invalid account' >&2", "exit 1")
    with pytest.raises(Unavailable, match="Nothing was submitted"):
        queue.submit(paths, SLURM, WANTED)
    assert queue.jobs(paths) == ()


def test_a_job_that_was_not_heard_of_in_time_may_be_in_the_queue(
    program, paths: RunPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "_PATIENCE_S", 0.2)
    program("sbatch", "exec sleep 60")
    with pytest.raises(Unavailable) as refused:
        queue.submit(paths, SLURM, WANTED)
    said = str(refused.value)
    assert "Job 1 may be in the queue all the same: squeue --name=bakeoff-r-1" in said
    assert "Nothing was submitted" not in said
    assert [(one.job, one.keys) for one in queue.jobs(paths)] == [("", ("cell1",))]


def test_that_a_job_is_run_again_is_said_before_the_queue_ends_it(
    program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.delenv("SLURM_RESTART_COUNT", raising=False)
    asked, said = tmp_path / "asked", []
    program("scontrol", f"echo $* > {asked}")
    assert queue.requeue(SLURM, lambda: said.append(asked.exists()))
    assert (said, asked.read_text()) == ([False], "requeue 7\n")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "3")
    assert not queue.requeue(SLURM, lambda: said.append(True))
    assert said == [False]


@pytest.mark.parametrize("job", ["--user=me", "-u", "7 8", "7;x", "7_[1-9]", "*", "7\n", "٣", "x"])
def test_a_job_that_is_no_number_is_never_handed_to_the_queue(paths, program, job: str) -> None:
    program("scancel", "touch cancelled")
    held = {"number": 1, "job": job, "nodes": 1, "minutes": 5, "keys": [], "parts": 1}
    paths.files.write_json(paths.jobs, {"version": 1, "jobs": [held]})
    with pytest.raises(DamagedFile, match="is no number of a job"):
        queue.jobs(paths)
    paths.files.write_json(paths.jobs, {"version": 1, "jobs": [{**held, "job": "7_2"}]})
    assert [one.job for one in queue.jobs(paths)] == ["7_2"]
