"""Let workers take checkpoints, and hold what they say of them to the loop's clock."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.worker import __main__ as worker
from harness.worker import job as jobs
from harness.worker.checkpoints import background, checkpoint_files, plain
from harness.worker.checkpoints.plain import PlainState
from harness.worker.checkpoints.series import Series
from harness.worker.job import Job, Span
from harness.worker.scale import Scale


class Asynchronous(PlainState):
    """A saver that copies the state and writes it later; or forgets to copy it."""

    copies = True

    def save(self, folder: str) -> Any:
        frozen = PlainState(self.bytes, 1, {})
        frozen.state = bytearray(self.state) if self.copies else self.state
        return lambda: PlainState.save(frozen, folder)


def worked(
    folder: Path, *, every: int, workload: str = "tinycnn", through: bool = False
) -> tuple[int, list[dict[str, Any]]]:
    """Run a worker of the null adapter here; give its exit code and what it said."""
    paths = {"checkpoint_to": str(folder / "slow")}
    if through:
        paths["checkpoint_through"] = str(folder / "fast")
    job = Job(
        purpose="trial",
        cell_key="k",
        trial="trial-1",
        workload=workload,
        workload_module=f"workloads.{workload.replace('-', '_')}",
        framework="null",
        adapter_module="harness.worker.adapters.null",
        environment="null",
        strategy="none",
        scale=Scale(),
        factors={"checkpoint_every": every},
        options={},
        warmup=Span(steps=5),
        until=Span(steps=20),
        seed=1,
        directory=str(folder),
        paths=paths,
    )
    place = folder / "job.json"
    place.write_text(jobs.text(job))
    code = worker.main(str(place))
    lines = (folder / "events.0.jsonl").read_text().splitlines()
    return code, [json.loads(line) for line in lines]


@pytest.mark.parametrize("copies", [True, False], ids=["with a copy", "without one"])
def test_a_saver_that_writes_while_the_state_changes_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: bool
) -> None:
    monkeypatch.setattr(Asynchronous, "copies", copies)
    monkeypatch.setattr(plain, "PlainState", lambda *_: Asynchronous(1 << 20, 1, {"images": 1.0}))
    # the writer behind the training is held until the proof's steps have changed the state
    real = Series.finish
    gate = threading.Event()
    put = background.Background.put

    def late(self: Any, task: Any) -> None:
        put(self, lambda: (gate.wait(), task())[1])

    def finish(self: Series) -> None:
        gate.set()
        real(self)
        gate.clear()

    monkeypatch.setattr(background.Background, "put", late)
    monkeypatch.setattr(Series, "finish", finish)
    code, said = worked(tmp_path, every=50)
    (proof,) = [event for event in said if event["event"] == "restored"]
    assert proof["state_true"] is copies
    assert code == (0 if copies else worker.FAILED)


def test_a_trial_proves_what_a_restart_would_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest is torn as soon as it is there: the one before it is restored, and says so."""
    real = checkpoint_files.appear

    def torn(place: str, step: int, files: Any) -> Any:
        one = real(place, step, files)
        if step == 25:
            with Path(one.paths()[0]).open("r+b") as file:
                file.write(b"torn")
        return one

    monkeypatch.setattr(checkpoint_files, "appear", torn)
    code, said = worked(tmp_path, every=5)
    (proof,) = [event for event in said if event["event"] == "restored"]
    assert (proof["step"], proof["files_true"]) == (20, True)
    assert code == worker.FAILED
    assert "the newest true checkpoint is that of step 20, not 25" in said[-1]["message"]


@pytest.mark.parametrize("through", [False, True], ids=["straight", "through a fast tier"])
def test_a_trial_times_its_checkpoints_apart_and_proves_the_last(
    tmp_path: Path, through: bool
) -> None:
    code, said = worked(tmp_path, every=10, through=through)
    assert code == 0
    taken = [event for event in said if event["event"] == "checkpoint"]
    assert [(event["phase"], event["step"]) for event in taken] == [
        ("measure", 10),
        ("measure", 20),
        ("prove", 25),
    ]
    windows = [event for event in said if event["event"] == "window"]
    assert all(not one["start"] < event["start"] < one["end"] for one in windows for event in taken)
    assert {10, 20} <= {one["first"] + one["steps"] for one in windows}
    states = [(e["step"], e["state"]) for e in said if e["event"] == "checkpoint-state"]
    assert ((10, "draining") in states) is through
    assert {(10, "durable"), (20, "durable"), (25, "durable")} <= set(states)
    (proof,) = [event for event in said if event["event"] == "restored"]
    assert (proof["step"], proof["files_true"], proof["state_true"]) == (25, True, True)
    assert not (tmp_path / "slow").exists()


def test_where_saving_is_the_work_the_clock_runs_over_it(tmp_path: Path) -> None:
    code, said = worked(tmp_path, every=1, workload="checkpoint-tinycnn")
    assert code == 0
    windows = {
        (one["start"], one["end"])
        for one in said
        if one["event"] == "window" and one["phase"] == "measure"
    }
    saved = {
        (one["start"], one["end"])
        for one in said
        if one["event"] == "checkpoint" and one["phase"] == "measure"
    }
    assert windows == saved
    assert len(saved) == 20
