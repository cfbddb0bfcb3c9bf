"""Test locks between open files, as between processes."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import locks
from harness.locks import Holder, take


@contextmanager
def held_by_name(path: Path) -> Iterator[bool]:
    with path.open("a+") as file, locks.held_by_name(file.fileno()) as is_ours:
        yield is_ours


def holder(path: Path) -> Holder | None:
    with path.open("a+") as file:
        return locks.holder(file.fileno())


def test_a_lock_is_held_alone_or_with_other_readers(tmp_path: Path):
    path = tmp_path / "lock"
    with path.open("a") as one, path.open("a") as other:
        assert take(one, alone=False)
        assert take(other, alone=False)
        assert not take(other)
    with path.open("a") as one, path.open("a") as other:
        assert take(one)
        assert not take(other, alone=False)


def test_the_holder_of_a_lock_is_named_only_while_it_holds_it(tmp_path: Path):
    path = tmp_path / "lock"
    assert holder(path) is None
    with held_by_name(path) as is_ours:
        assert is_ours
        found = holder(path)
        assert found is not None
        assert (found.pid, found.host) == (os.getpid(), socket.gethostname())
        with held_by_name(path) as again:
            assert not again
        assert holder(path) == found
    assert holder(path) is None


def test_a_holder_that_was_killed_holds_nothing(tmp_path: Path):
    path = tmp_path / "lock"
    path.write_text('{"pid": 1, "host": "h", "since_wall_ns": 1}')
    assert holder(path) is None


def test_a_holder_that_is_just_writing_its_name_is_not_overlooked(tmp_path: Path):
    path = tmp_path / "lock"
    with path.open("a") as file:
        assert take(file)
        assert holder(path) == Holder()
    assert str(Holder()) == "another bakeoff process"


def test_who_only_looks_keeps_nobody_from_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "lock"
    with path.open("a") as looking:
        assert take(looking, alone=False)
        monkeypatch.setattr("time.sleep", lambda _: looking.close())
        with held_by_name(path) as is_ours:
            assert is_ours


def test_a_file_system_without_locks_refuses_nobody_and_goes_by_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(_file: object, _how: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "lock"
    with held_by_name(path) as is_ours:
        assert is_ours
        found = holder(path)
        assert found is not None
        assert found.pid == os.getpid()
    assert holder(path) is None


def test_without_locks_a_living_process_of_this_machine_is_heeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(_file: object, _how: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "lock"
    for pid, host, is_free in (
        (os.getppid(), socket.gethostname(), False),
        (2**22 + 1, socket.gethostname(), True),
        (os.getppid(), "elsewhere", True),
    ):
        path.write_text(f'{{"pid": {pid}, "host": "{host}", "since_wall_ns": 1}}')
        with held_by_name(path) as is_ours:
            assert is_ours is is_free
