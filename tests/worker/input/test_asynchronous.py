"""Hold the asynchronous reader to its word: the same samples in fewer requests."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.worker.input.dataset import Dataset
from harness.worker.input.loaders.asynchronous import AsyncLoader
from harness.worker.input.loaders.requests import MOST_BYTES, requests
from harness.worker.input.open import reading
from harness.worker.network.workload import Reading
from harness.worker.place import Place
from tests.scales import fed

pytestmark = pytest.mark.io

WORKLOAD = Reading("read-tiny", "Tiny pictures", "tiny-pictures", 512)
SPEC = DataSetSpec("tiny-pictures", "npy", 512)


@pytest.fixture(scope="module", params=["npy", "npz", "lmdb"])
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    spec = DataSetSpec("tiny-pictures", request.param, 512)
    made = tmp_path_factory.mktemp("sets") / spec.name
    create(spec, made, doing=lambda _: None)
    return made


def run(folder: Path, reader: str, **factors: Any) -> tuple[list[tuple[int, bytes]], Any]:
    asked = {
        "format": folder.name.split("-")[2],
        "reader": reader,
        "batch": 16,
        "shuffle": "file",
        "buffer_samples": 128,
        **factors,
    }
    feed = fed(WORKLOAD, asked, Place(0, 1, 0, 1, "here", "none"), folder)
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
@pytest.mark.parametrize(("buffers", "threads"), [(1, 1), (2, 1), (2, 3)])
def test_it_delivers_what_the_synchronous_reader_delivers(
    folder: Path, reader: str, buffers: int, threads: int
) -> None:
    expected, synchronous = run(folder, "threads")
    taken, told = run(folder, reader, buffers=buffers, reader_threads=threads)
    assert taken == expected
    assert told["order"] == synchronous["order"]


def test_neighbours_are_read_in_one_request(tmp_path: Path) -> None:
    create(SPEC, tmp_path / SPEC.name, doing=lambda _: None)
    wanted = requests(Dataset(str(tmp_path / SPEC.name)), [3, 1, 2, 70, 0])
    assert [[part.slot for part in one.parts] for one in wanted] == [[4, 1, 2, 0], [3]]
    _, synchronous = run(tmp_path / SPEC.name, "pread")
    _, told = run(tmp_path / SPEC.name, "async-thread")
    assert told["calls"] < synchronous["calls"] / 5


def test_a_large_sample_is_read_in_pieces(tmp_path: Path) -> None:
    spec = DataSetSpec("volumes", "hdf5", 2)
    create(spec, tmp_path / spec.name, doing=lambda _: None)
    dataset = Dataset(str(tmp_path / spec.name))
    wanted = requests(dataset, [0, 1])
    assert [one.length for one in wanted] == [MOST_BYTES] * 8
    files = {"shuffle": "none", "buffer_samples": 2, "batch": 2}
    assert (
        run(tmp_path / spec.name, "async-thread", **files)[0]
        == (run(tmp_path / spec.name, "pread", **files)[0])
    )


def test_a_reading_process_that_is_killed_ends_the_trial(tmp_path: Path) -> None:
    create(SPEC, tmp_path / SPEC.name, doing=lambda _: None)
    asked = {"format": "npy", "reader": "async-process", "batch": 16, "buffer_samples": 128}
    place = Place(0, 1, 0, 1, "here", "none")
    work = reading(WORKLOAD, fed(WORKLOAD, asked, place, tmp_path / SPEC.name))
    work.epochs.turn()
    (pid,) = work.epochs._loader.pids()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ChildProcessError, match="killed"):
        work.epochs.next()


def test_a_file_cut_short_ends_the_trial(tmp_path: Path) -> None:
    create(SPEC, tmp_path / SPEC.name, doing=lambda _: None)
    victim = sorted((tmp_path / SPEC.name / "files").iterdir())[1]
    victim.write_bytes(victim.read_bytes()[:-10])
    for reader in ("async-thread", "async-process"):
        with pytest.raises(EOFError, match="bakeoff data check"):
            run(tmp_path / SPEC.name, reader)


class Odd(Exception):
    """What no pickle brings to another process: making it takes two words, and it keeps one."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")


@pytest.mark.parametrize("is_process", [False, True])
def test_whatever_goes_wrong_in_a_reader_reaches_whoever_waits(is_process: bool) -> None:
    def broken(_: Any) -> Any:
        raise Odd("the container", "is odd")

    made: Any = SimpleNamespace(has_index=False, manifest={"largest": 8})
    how = {"threads": 1, "buffers": 1, "buffer_samples": 1, "process": is_process}
    loader = AsyncLoader(made, broken, batch_per_rank=1, **how)  # type: ignore[arg-type]
    loader.begin([0])
    with pytest.raises(Exception, match="the container: is odd"):
        loader.next()
