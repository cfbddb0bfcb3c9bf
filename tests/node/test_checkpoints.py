"""This file holds checkpoints to being whole, true, in order, and restored."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.node import __main__ as worker
from harness.node import job as jobs
from harness.node.checkpoints import background, kept, series
from harness.node.checkpoints.asked import Asked
from harness.node.checkpoints.plain import PlainState
from harness.node.checkpoints.series import Full, Series
from harness.node.job import Job, Span
from harness.node.place import Place

ALONE = Place(0, 1, 0, 1, "here", "none")


@pytest.fixture
def state() -> PlainState:
    return PlainState(3 << 20, seed=1, units={})


@pytest.fixture
def made(state: PlainState, tmp_path: Path) -> Iterator[Callable[..., Series]]:
    open_ones: list[Series] = []

    def make(saver: Any = None, *, through: bool = False) -> Series:
        to, fast = str(tmp_path / "slow"), str(tmp_path / "fast") if through else None
        one = Series(Asked(1, to, fast, is_the_work=False), saver or state, ALONE)
        open_ones.append(one)
        return one

    yield make
    for one in open_ones:
        one.close()


def restored(state: PlainState, *places: str) -> int:
    """Restore the newest true one into a fresh state; give its step."""
    found = kept.newest(places)
    assert found is not None
    fresh = PlainState(state.bytes, seed=1, units={})
    fresh.restore(found.folder)
    expected = PlainState(state.bytes, seed=1, units={})
    expected.steps = found.step - 1
    expected.step()
    assert fresh.digest() == expected.digest()
    return found.step


def test_a_checkpoint_brings_back_the_state_of_its_step(
    state: PlainState, made: Callable[..., Series]
) -> None:
    one = made()
    for step in (1, 2, 3):
        state.step()
        one.save(step)
    assert restored(state, *one.places()) == 3
    assert [each.step for each in kept.complete(one.asked.to)] == [3, 2]


def test_a_burst_buffer_returns_before_the_slow_tier_has_it_and_drains_in_order(
    state: PlainState, made: Callable[..., Series], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, real = threading.Event(), background.drain

    def held(*asked: Any) -> Any:
        gate.wait()
        return real(*asked)

    monkeypatch.setattr(series, "drain", held)
    one, said = made(through=True), []
    one.watch(lambda step, state: said.append((step, state)), lambda: None)
    for step in (1, 2):
        state.step()
        one.save(step)
    assert kept.complete(one.asked.to) == []
    assert restored(state, *one.places()) == 2
    gate.set()
    one.finish()
    assert [step for step, state in said if state == "durable"] == [1, 2]
    assert kept.complete(str(one.asked.through)) == []
    assert restored(state, one.asked.to) == 2


def test_what_the_fast_tier_holds_is_bounded(
    state: PlainState, made: Callable[..., Series], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, third = threading.Event(), threading.Event()

    def held(*asked: Any) -> Any:
        gate.wait()
        return background.drain(*asked)

    monkeypatch.setattr(series, "drain", held)
    one = made(through=True)
    for step in range(1, series.ROOM + 1):
        one.save(step)

    def save_third() -> None:
        one.save(series.ROOM + 1)
        third.set()

    waiting = threading.Thread(target=save_third)
    waiting.start()
    assert len(kept.complete(str(one.asked.through))) == series.ROOM
    assert not third.is_set()
    gate.set()
    waiting.join()
    one.finish()


class Asynchronous(PlainState):
    """A saver that copies the state and writes it later; or forgets to copy it."""

    copies = True

    def save(self, folder: str) -> Any:
        frozen = PlainState(self.bytes, 1, {})
        frozen.state = bytearray(self.state) if self.copies else self.state
        return lambda: PlainState.save(frozen, folder)


@pytest.mark.parametrize("copies", [True, False], ids=["with a copy", "without one"])
def test_a_saver_that_writes_while_the_state_changes_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: bool
) -> None:
    from harness.node.adapters import null

    monkeypatch.setattr(Asynchronous, "copies", copies)
    monkeypatch.setattr(
        null.NullAdapter, "_saved", lambda *_: Asynchronous(1 << 20, 1, {"images": 1.0})
    )
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


def test_a_torn_checkpoint_is_passed_over(state: PlainState, made: Callable[..., Series]) -> None:
    one = made()
    for step in (1, 2):
        state.step()
        one.save(step)
    newest, _ = kept.complete(one.asked.to)
    (file,) = newest.paths()
    with Path(file).open("r+b") as torn:  # the size stays: a page that never reached the disk
        torn.seek(1 << 20)
        torn.write(bytes(4096))
    assert restored(state, one.asked.to) == 1
    os.truncate(file, 1 << 20)
    assert [each.step for each in kept.complete(one.asked.to)] == [1]
    manifest = Path(newest.folder) / kept.MANIFEST
    manifest.write_text(manifest.read_text()[:40])
    assert [each.step for each in kept.complete(one.asked.to)] == [1]


def test_a_trial_proves_what_a_restart_would_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest is torn as soon as it is there: the one before it is restored, and says so."""
    real = kept.appear

    def torn(place: str, step: int, files: Any) -> Any:
        one = real(place, step, files)
        if step == 25:
            with Path(one.paths()[0]).open("r+b") as file:
                file.write(b"torn")
        return one

    monkeypatch.setattr(kept, "appear", torn)
    code, said = worked(tmp_path, every=5)
    (proof,) = [event for event in said if event["event"] == "restored"]
    assert (proof["step"], proof["files_true"]) == (20, True)
    assert code == worker.FAILED
    assert "the newest true checkpoint is that of step 20, not 25" in said[-1]["message"]


def test_a_file_that_changes_on_the_fast_tier_never_becomes_durable(
    state: PlainState, tmp_path: Path
) -> None:
    kept.begin(str(tmp_path), 1)
    state.save(kept.begun(str(tmp_path), 1))
    one = kept.seal(str(tmp_path), 1)
    with Path(one.paths()[0]).open("r+b") as file:
        file.write(b"x")
    with pytest.raises(background.Corrupt, match=r"state\.bin changed"):
        background.drain(one, str(tmp_path / "slow"))
    assert kept.complete(str(tmp_path / "slow")) == []


def test_a_full_disk_is_named_and_spoils_nothing_that_was_whole(
    state: PlainState, made: Callable[..., Series], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(through=True)
    state.step()
    one.save(1)
    one.finish()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(background, "_copy", full)
    state.step()
    one.save(2)
    with pytest.raises(Full, match="No space left on device; the checkpoint of step 2"):
        one.finish()
    assert restored(state, one.asked.to) == 1
    assert restored(state, *one.places()) == 2
    assert not [*Path(one.asked.to).glob(".*")]


def test_what_a_killed_process_had_begun_is_swept_away(
    state: PlainState, made: Callable[..., Series]
) -> None:
    one = made()
    state.step()
    one.save(1)
    kept.begin(one.asked.to, 2)
    shutil.copytree(f"{one.asked.to}/step-1", f"{one.asked.to}/.step-0.dropped")
    kept.sweep(one.asked.to)
    assert [each.name for each in Path(one.asked.to).iterdir()] == ["step-1"]


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
        adapter_module="harness.node.adapters.null",
        strategy="none",
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
