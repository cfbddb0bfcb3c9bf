"""Hold a bounded folder to its size, and to leaving alone what is in use."""

from __future__ import annotations

import os
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
