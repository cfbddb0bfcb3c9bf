"""This file holds the asynchronous reader to its word: the same samples in fewer requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.data.create import create
from harness.data.sets import Spec
from harness.node.feed import describe
from harness.node.input.asynchronous import spans
from harness.node.input.dataset import Dataset
from harness.node.input.open import reading
from harness.node.place import Place
from harness.node.workload import Reading

WORKLOAD = Reading("read-tiny", "Tiny pictures", "tiny-pictures", 512)
SPEC = Spec("tiny-pictures", "npy", 512)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sets") / SPEC.name
    create(SPEC, made, doing=lambda _: None)
    return made


def run(folder: Path, reader: str, **factors: Any) -> tuple[list[tuple[int, bytes]], Any]:
    asked = {
        "format": "npy",
        "reader": reader,
        "batch": 16,
        "shuffle": "file",
        "buffer_samples": 128,
        **factors,
    }
    feed = describe(WORKLOAD, asked, 1, Place(0, 1, 0, 1, "here", "none"), {"data": str(folder)})
    work = reading(WORKLOAD, feed)
    work.epochs.turn()
    taken: list[tuple[int, bytes]] = []
    for _ in range(2):
        while work.epochs.left():
            batch = work.epochs.next()
            taken += zip(batch.samples, map(bytes, batch.data), strict=True)
        told = work.epochs.turn()
    work.epochs._loader.close()
    return taken, told


@pytest.mark.parametrize("reader", ["async-thread", "async-process"])
@pytest.mark.parametrize("buffers", [1, 2])
def test_it_delivers_what_the_synchronous_reader_delivers(
    folder: Path, reader: str, buffers: int
) -> None:
    expected, synchronous = run(folder, "pread")
    taken, told = run(folder, reader, buffers=buffers)
    assert taken == expected
    assert told["order"] == synchronous["order"]


def test_neighbours_are_read_in_one_request(folder: Path) -> None:
    dataset = Dataset(str(folder))
    wanted = spans(dataset, [3, 1, 2, 70, 0])
    assert [(len(span.slots), span.slots) for span in wanted] == [(4, (4, 1, 2, 0)), (1, (3,))]
    _, synchronous = run(folder, "pread")
    _, told = run(folder, "async-thread")
    assert told["calls"] < synchronous["calls"] / 5


def test_a_file_cut_short_ends_the_trial(folder: Path, tmp_path: Path) -> None:
    create(SPEC, tmp_path / SPEC.name, doing=lambda _: None)
    victim = sorted((tmp_path / SPEC.name / "files").iterdir())[1]
    victim.write_bytes(victim.read_bytes()[:-10])
    for reader in ("async-thread", "async-process"):
        with pytest.raises(EOFError, match="bakeoff data check"):
            run(tmp_path / SPEC.name, reader)
