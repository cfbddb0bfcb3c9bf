"""An LMDB that was cut short is named, and never mapped: that would end the process."""

from __future__ import annotations

import os
import random
from pathlib import Path

import lmdb
import pytest

from harness.data.user_files import files, samples
from harness.errors import UsageError
from harness.worker.input.lmdb_pages import why_cut_short


def made(path: Path, seed: int) -> Path:
    """Write and delete values of all sizes in several transactions."""
    chance = random.Random(seed)
    with lmdb.open(str(path), subdir=False, map_size=1 << 26, lock=False) as database:
        for _ in range(chance.randint(1, 4)):
            with database.begin(write=True) as transaction:
                for _ in range(200):
                    key = b"%09d" % chance.randint(0, 999)
                    if chance.random() < 0.6:
                        transaction.put(key, chance.randbytes(chance.choice((10, 5000, 20000))))
                    else:
                        transaction.delete(key)
    return path


@pytest.mark.parametrize("seed", range(8))
def test_a_whole_database_is_whole_and_each_shorter_one_is_not(tmp_path: Path, seed: int) -> None:
    path = made(tmp_path / "data.mdb", seed)
    assert why_cut_short(str(path)) is None
    size = path.stat().st_size
    for left in (size - 1, size - 4096, size // 2, 8192, 8191, 4096, 100, 20, 0):
        os.truncate(path, left)
        assert why_cut_short(str(path)) is not None


def test_a_database_that_was_cut_short_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = made(tmp_path / "data.mdb", 1)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(UsageError, match=r"data\.mdb is no LMDB .*: it has .* of .* bytes"):
        samples(files(tmp_path), lambda _: None)


@pytest.mark.parametrize("at", [16, 24, 40, 4096 + 16, 4096 + 40])
def test_a_database_with_a_damaged_first_page_is_refused(tmp_path: Path, at: int) -> None:
    path = made(tmp_path / "data.mdb", 2)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff" * 8)
    assert why_cut_short(str(path)) is not None or at == 24
