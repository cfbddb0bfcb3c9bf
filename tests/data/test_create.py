"""This file makes data sets: the same in any order, going on where it stopped, never too large."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from harness.data import create as making
from harness.data.catalogue import CONTENTS
from harness.data.contents import sample
from harness.data.create import create
from harness.data.inspect import faults, remove
from harness.data.sets import MADE, Spec
from harness.errors import BakeoffError, UsageError

SPEC = Spec("tiny-pictures", "npy", 130)


def quiet(_: str) -> None:
    pass


def hashes(folder: Path) -> list[str]:
    manifest = json.loads((folder / "dataset.json").read_text())
    return [one["sha256"] for one in manifest["files"]]


def test_a_sample_follows_from_content_seed_and_number_alone() -> None:
    content = CONTENTS["traces"]
    assert sample(content, 1, 7) == sample(content, 1, 7)
    assert sample(content, 1, 7) != sample(content, 1, 8)
    assert sample(content, 1, 7) != sample(content, 2, 7)


def test_an_interrupted_set_goes_on_and_ends_as_if_it_had_never_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(SPEC, tmp_path / "whole", doing=quiet)
    real, calls = making.write_part, []

    def interrupted(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(making, "write_part", interrupted)
    with pytest.raises(KeyboardInterrupt):
        create(SPEC, tmp_path / "cut", doing=quiet)
    with (tmp_path / "cut" / MADE).open("a") as log:
        log.write('{"name": "0000')  # and the crash tore a line
    monkeypatch.setattr(making, "write_part", lambda *args: calls.append(args) or real(*args))
    create(SPEC, tmp_path / "cut", doing=quiet)
    assert len(calls) == 4
    assert hashes(tmp_path / "cut") == hashes(tmp_path / "whole")
    assert faults(tmp_path / "cut", doing=quiet) == []


def test_a_disk_that_fills_up_leaves_whole_files_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.data.formats import npy

    real = npy.write

    def full(path: Path, samples: Any, first: int, content: Any) -> Any:
        if first >= 64:
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, samples, first, content)

    monkeypatch.setattr(npy, "write", full)
    with pytest.raises(BakeoffError, match="the disk is full; 1 of 3 files are kept"):
        create(SPEC, tmp_path / "set", doing=quiet)
    assert [p.name for p in (tmp_path / "set" / "files").iterdir()] == ["000000.npy"]
    monkeypatch.setattr(npy, "write", real)
    create(SPEC, tmp_path / "set", doing=quiet)
    assert faults(tmp_path / "set", doing=quiet) == []


def test_a_set_that_would_fill_the_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BakeoffError, match="GB are free"):
        create(Spec("deep-volumes", "npy", 10**9), tmp_path / "set", doing=quiet)


def test_a_changed_a_missing_and_a_strange_file_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    create(SPEC, folder, doing=quiet)
    first, second, third = sorted((folder / "files").iterdir())
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    second.unlink()
    third.write_bytes(b"")
    (folder / "files" / "mine.txt").write_text("hello")
    assert faults(folder, doing=quiet) == [
        "000000.npy has other content than was written",
        "000001.npy is missing",
        "000002.npy has 0 bytes, not 6272",
        "mine.txt does not belong to it",
    ]


def test_only_a_data_set_is_removed(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with pytest.raises(BakeoffError, match="no data set"):
        remove(tmp_path / "photos")
    create(SPEC, tmp_path / "set", doing=quiet)
    assert remove(tmp_path / "set") > 130 * 3072
    assert not (tmp_path / "set").exists()


def test_pictures_do_not_go_into_arrays() -> None:
    with pytest.raises(UsageError, match="encoded pictures"):
        making.checked(Spec("pictures", "npy", 1))


def test_the_sizes_of_pictures_lie_around_their_median() -> None:
    sizes = sorted(len(sample(CONTENTS["small-pictures"], 1, number).data) for number in range(40))
    assert 10_000 < sizes[20] < 14_500
    assert sizes[0] < 9_000 < 16_000 < sizes[-1]


def test_no_picture_is_larger_than_what_buffers_are_planned_for() -> None:
    content = CONTENTS["small-pictures"]
    largest = max(len(sample(content, 1, number).data) for number in range(60))
    assert content.median_bytes < largest < content.most_bytes
