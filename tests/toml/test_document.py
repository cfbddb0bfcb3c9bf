"""Hold the reader of TOML files to files that are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import FaultyFile, UsageError
from harness.toml.document import read_document


def test_what_is_no_file_is_refused_in_one_sentence_and_never_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "study.toml"
    os.mkfifo(pipe)  # nobody writes to it
    for path in (Path("/dev/zero"), pipe):
        with pytest.raises(UsageError, match=rf"^{path}: this is no file, but a pipe, a socket"):
            read_document(path)
    with pytest.raises(UsageError, match=r"cannot be read: Is a directory"):
        read_document(tmp_path)


def test_a_file_that_is_too_large_is_refused_in_one_sentence(tmp_path: Path) -> None:
    large = tmp_path / "study.toml"
    large.touch()
    os.truncate(large, (16 << 20) + 1)
    with pytest.raises(UsageError, match=r"this file is larger than 16 MiB\."):
        read_document(large)


def test_dotted_keys_that_lie_too_deep_are_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "deep.toml"
    file.write_text(f"[{'a.' * 20_000}b]\nx = 1\n")
    with pytest.raises(FaultyFile, match="it is nested too deeply"):
        read_document(file)
