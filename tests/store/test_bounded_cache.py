"""Hold a bounded folder to its size, and to leaving alone what is in use."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.store.bounded_cache import Cache

BOUND = 10_000


def fill(place: Path) -> None:
    (place / "made").write_bytes(bytes(4_000))


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    kept = Cache(tmp_path / "kept", BOUND)
    yield kept
    kept.release_all()


def names(tmp_path: Path) -> set[str]:
    return {one.name for one in (tmp_path / "kept").iterdir()} - {"lock"}


def test_what_was_used_least_recently_goes_first(cache, tmp_path) -> None:
    for age, name in enumerate("abc"):
        place = cache.take(name, fill)
        os.utime(place, (age, age))
    assert names(tmp_path) == {"a", "b", "c"}
    os.utime(tmp_path / "kept" / "a", (9, 9))
    cache.release_all()
    assert names(tmp_path) == {"a", "c"}


def test_what_any_process_holds_stays_though_the_bound_is_passed(cache, tmp_path) -> None:
    other = Cache(tmp_path / "kept", BOUND)
    other.take("old", fill)
    for name in "abc":
        cache.take(name, fill)
        cache.release_all()
    assert names(tmp_path) == {"old", "c"}
    other.release_all()
    assert "old" in names(tmp_path)


def test_a_thing_is_made_once_and_found_again(cache, tmp_path) -> None:
    cache.take("a", fill)
    cache.release_all()
    found = cache.take("a", lambda _: pytest.fail("made twice"))
    assert (found / "made").stat().st_size == 4_000


@pytest.mark.parametrize("change", ["edit", "add", "rename", "lose the digest"])
def test_what_was_changed_by_hand_is_made_anew_and_said(change, tmp_path) -> None:
    said: list[str] = []
    for _ in range(2):  # the second finds what the first made
        cache = Cache(tmp_path / "kept", BOUND, said.append)
        place = cache.take("a", fill)
        cache.release_all()
    assert said == []
    whole = (place / "made").read_bytes()
    if change == "edit":  # one bit, at the same length and time
        stamp = (place / "made").stat()
        (place / "made").write_bytes(b"\1" + whole[1:])
        os.utime(place / "made", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    elif change == "add":
        (place / "more").touch()
    elif change == "rename":
        (place / "made").rename(place / "other")
    else:
        (place / "digest").unlink()
    cache = Cache(tmp_path / "kept", BOUND, said.append)
    again = cache.take("a", fill)
    assert (again / "made").read_bytes() == whole
    assert {one.name for one in again.iterdir()} == {"made", "held", "digest"}
    assert said == [f"{place} was changed by hand and is not believed: it is made anew."]
    cache.release_all()
    assert names(tmp_path) == {"a"}


def test_what_was_changed_while_another_process_holds_it_is_not_believed(cache, tmp_path) -> None:
    other = Cache(tmp_path / "kept", BOUND)
    theirs = other.take("a", fill)
    (theirs / "made").write_bytes(b"changed")
    assert (cache.take("a", fill) / "made").stat().st_size == 4_000
    cache.release_all()
    assert len(names(tmp_path)) == 2  # it stays, hidden, while it is held
    other.release_all()
    assert names(tmp_path) == {"a"}


def test_what_fails_to_be_made_leaves_nothing(cache, tmp_path) -> None:
    def fail(_: Path) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.take("a", fail)
    assert names(tmp_path) == set()


def test_scratch_of_a_killed_process_goes_and_that_of_a_living_one_stays(cache, tmp_path) -> None:
    with cache.scratch("living") as living:
        killed = tmp_path / "kept" / ".killed.abc"
        killed.mkdir()
        (killed / "held").touch()
        cache.trim()
        assert living.is_dir()
        assert not killed.exists()
    assert names(tmp_path) == set()


def test_what_another_process_makes_is_waited_for_and_not_made_twice(cache, tmp_path) -> None:
    made: list[str] = []
    here, there = multiprocessing.Pipe()

    def other() -> None:
        def slowly(place: Path) -> None:
            there.send("begun")
            there.recv()
            fill(place)

        Cache(tmp_path / "kept", BOUND).take("one", slowly)

    process = multiprocessing.get_context("fork").Process(target=other)
    process.start()
    assert here.recv() == "begun"
    waiting = threading.Thread(target=cache.take, args=("one", lambda _: made.append("again")))
    waiting.start()
    here.send("go on")
    waiting.join()
    process.join()
    assert made == []
    assert (tmp_path / "kept" / "one" / "made").is_file()
    assert names(tmp_path) == {"one"}
