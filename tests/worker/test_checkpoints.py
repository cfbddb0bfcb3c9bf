"""Hold checkpoints to being whole, true, in order, and restored."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.worker.checkpoints import background, checkpoint_files, series
from harness.worker.checkpoints.plain import PlainState
from harness.worker.checkpoints.request import Asked
from harness.worker.checkpoints.series import Full, Series
from harness.worker.place import Place

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
    found = checkpoint_files.newest(places)
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
    assert [each.step for each in checkpoint_files.complete(one.asked.to)] == [3, 2]


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
    assert checkpoint_files.complete(one.asked.to) == []
    assert restored(state, *one.places()) == 2
    gate.set()
    one.finish()
    assert [step for step, state in said if state == "durable"] == [1, 2]
    assert checkpoint_files.complete(str(one.asked.through)) == []
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
    assert len(checkpoint_files.complete(str(one.asked.through))) == series.ROOM
    assert not third.is_set()
    gate.set()
    waiting.join()
    one.finish()


def test_a_torn_checkpoint_is_passed_over(state: PlainState, made: Callable[..., Series]) -> None:
    one = made()
    for step in (1, 2):
        state.step()
        one.save(step)
    newest, _ = checkpoint_files.complete(one.asked.to)
    (file,) = newest.paths()
    with Path(file).open("r+b") as torn:  # the size stays: a page that never reached the disk
        torn.seek(1 << 20)
        torn.write(bytes(4096))
    assert restored(state, one.asked.to) == 1
    os.truncate(file, 1 << 20)
    assert [each.step for each in checkpoint_files.complete(one.asked.to)] == [1]
    manifest = Path(newest.folder) / checkpoint_files.MANIFEST
    manifest.write_text(manifest.read_text()[:40])
    assert [each.step for each in checkpoint_files.complete(one.asked.to)] == [1]


def test_a_file_that_changes_on_the_fast_tier_never_becomes_durable(
    state: PlainState, tmp_path: Path
) -> None:
    checkpoint_files.begin(str(tmp_path), 1)
    state.save(checkpoint_files.begun(str(tmp_path), 1))
    one = checkpoint_files.seal(str(tmp_path), 1)
    with Path(one.paths()[0]).open("r+b") as file:
        file.write(b"x")
    with pytest.raises(background.Corrupt, match=r"state\.bin changed"):
        background.drain(one, str(tmp_path / "slow"))
    assert checkpoint_files.complete(str(tmp_path / "slow")) == []


@pytest.mark.parametrize(
    "fault",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        RuntimeError("RESOURCE_EXHAUSTED: /tier/step; No space left on device"),
    ],
    ids=["the system's", "a framework's"],
)
def test_a_full_disk_is_named_and_spoils_nothing_that_was_whole(
    state: PlainState,
    made: Callable[..., Series],
    monkeypatch: pytest.MonkeyPatch,
    fault: Exception,
) -> None:
    one = made(through=True)
    state.step()
    one.save(1)
    one.finish()

    def full(*_: Any) -> None:
        raise fault

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
    checkpoint_files.begin(one.asked.to, 2)
    shutil.copytree(f"{one.asked.to}/step-1", f"{one.asked.to}/.step-0.dropped")
    checkpoint_files.sweep(one.asked.to)
    assert [each.name for each in Path(one.asked.to).iterdir()] == ["step-1"]
