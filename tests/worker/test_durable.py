from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.worker.durable import whole_file


def test_a_file_that_was_interrupted_leaves_the_old_one_and_nothing_beside_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "index.json"
    file.write_text("old")

    def interrupted() -> None:
        with whole_file(file) as beside:
            beside.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("settled", [True, False])
def test_a_settled_file_is_flushed_before_it_is_named_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: bool
) -> None:
    file, flushed = tmp_path / "index.json", []

    def fsync(descriptor: int) -> None:
        flushed.append((Path(f"/proc/self/fd/{descriptor}").readlink(), file.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    with whole_file(file, settled=settled) as beside:
        beside.write_text("new")
    assert flushed == ([(beside, False), (tmp_path, True)] if settled else [])
    assert file.read_text() == "new"
