from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.store.files import read_json, write_json, write_whole


def test_a_file_is_replaced_whole_and_nothing_stays_beside_it(tmp_path):
    file = tmp_path / "outcome.json"
    write_json(file, {"outcome": "failed"})
    write_json(file, {"outcome": "ok"})
    assert read_json(file) == {"outcome": "ok"}
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "quota"), (errno.EROFS, "another folder")],
)
def test_a_full_disk_leaves_the_old_file_and_says_what_to_do(tmp_path, monkeypatch, number, words):
    file = tmp_path / "outcome.json"
    write_whole(file, "old")

    def refuse(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RunError, match=words) as told:
        write_whole(file, "new")
    assert "resume" not in str(told.value)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_device_is_written_through_and_never_replaced(tmp_path):
    device = tmp_path / "full"
    os.mkfifo(device)
    reader = os.open(device, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(device, "page")
        assert os.read(reader, 100) == b"page"
    finally:
        os.close(reader)
    assert device.is_fifo()
    assert list(tmp_path.iterdir()) == [device]


def test_a_full_device_is_a_full_disk():
    with pytest.raises(RunError, match="the disk is full"):
        write_whole(Path("/dev/full"), "page")
    assert Path("/dev/full").is_char_device()


def test_a_folder_is_not_replaced_by_a_file(tmp_path):
    with pytest.raises(RunError, match="Is a directory"):
        write_whole(tmp_path, "page")


def test_a_place_where_nobody_may_write_is_named():
    with pytest.raises(RunError, match=r"/proc/1/outcome\.json: "):
        write_whole(Path("/proc/1/outcome.json"), "text")


def test_damaged_and_missing_files_are_named(tmp_path):
    file = tmp_path / "plan.json"
    with pytest.raises(RunError, match=r"plan\.json: there is no such file"):
        read_json(file)
    file.write_text('{"version": 1')
    with pytest.raises(RunError, match=r"plan\.json: this file is damaged"):
        read_json(file)


def test_numbers_that_json_does_not_know_are_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "outcome.json", {"rate": float("nan")})
    assert list(tmp_path.iterdir()) == []
