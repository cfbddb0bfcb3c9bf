"""The raw tensor folder: what is written is read, and nothing half-written is."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
import pytest

from harness.worker.gate import tensors


def test_what_is_written_is_read_back_exactly(tmp_path: Path) -> None:
    writer = tensors.Writer(str(tmp_path))
    writer.put("a/weight", (2, 3), array("d", [1.5, -0.0, 1e-300, 4, 5, 6]))
    writer.put("target", (2,), np.array([7, -8]), "int64")
    writer.put("loss", (), array("d", [0.5]))
    writer.close({"precision": "float64"})

    folder = tensors.read(str(tmp_path))
    assert folder.about == {"precision": "float64"}
    assert folder.tensors["a/weight"].shape == (2, 3)
    assert list(folder.tensors["a/weight"].items()) == [1.5, -0.0, 1e-300, 4, 5, 6]
    assert list(folder.tensors["target"].items()) == [7, -8]
    assert list(folder.under("a/")) == ["weight"]


def test_numpy_reads_a_file_as_little_endian_numbers(tmp_path: Path) -> None:
    writer = tensors.Writer(str(tmp_path))
    writer.put("a", (2,), array("d", [1.0, 2.0]))
    writer.close({})
    path = tensors.read(str(tmp_path)).tensors["a"].path
    assert np.fromfile(path, "<f8").tolist() == [1.0, 2.0]


def test_a_folder_that_was_not_closed_has_no_index(tmp_path: Path) -> None:
    tensors.Writer(str(tmp_path)).put("a", (1,), array("d", [1.0]))
    with pytest.raises(FileNotFoundError):
        tensors.read(str(tmp_path))


def test_items_that_do_not_fill_their_shape_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has 8 bytes; shape \(2,\) of float64 needs 16"):
        tensors.Writer(str(tmp_path)).put("a", (2,), array("d", [1.0]))


def test_a_name_is_written_once(tmp_path: Path) -> None:
    writer = tensors.Writer(str(tmp_path))
    writer.put("a", (1,), array("d", [1.0]))
    with pytest.raises(ValueError, match="already written"):
        writer.put("a", (1,), array("d", [1.0]))


def test_a_file_longer_than_its_shape_is_refused(tmp_path: Path) -> None:
    writer = tensors.Writer(str(tmp_path))
    writer.put("a", (1,), array("d", [1.0]))
    writer.close({})
    tensor = tensors.read(str(tmp_path)).tensors["a"]
    with Path(tensor.path).open("ab") as file:
        file.write(b"\0" * 8)
    with pytest.raises(ValueError, match="longer than shape"):
        tensor.items()
