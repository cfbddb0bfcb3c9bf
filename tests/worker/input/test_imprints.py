"""Make readers cheat with names and with bytes: what was not delivered is no result."""

from __future__ import annotations

import os
import signal
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.worker import loop
from harness.worker.input import open as opening
from harness.worker.input.dataset import Dataset
from harness.worker.input.evidence.audit import WrongDelivery
from harness.worker.input.evidence.imprints import Imprints, imprint
from harness.worker.input.loaders.loader import Batch
from harness.worker.input.open import reading
from harness.worker.job import Span
from harness.worker.network.workload import Reading
from harness.worker.place import Place
from tests.scales import fed

pytestmark = pytest.mark.io

WORKLOAD = Reading("read-tiny", "Tiny pictures", "tiny-pictures", 200)
ALONE = Place(0, 1, 0, 1, "here", "none")


class Said:
    """Keep the events of a trial."""

    def __init__(self) -> None:
        self.epochs: list[dict[str, Any]] = []

    def say(self, event: str, **what: Any) -> None:
        if event == "epoch":
            self.epochs.append(what)

    def flush(self) -> None:
        pass


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    for name in ("raw", "npy", "npz"):
        spec = DataSetSpec("tiny-pictures", name, 200)
        create(spec, folder / spec.name, doing=lambda _: None)
    return folder


def activity(sets: Path, **factors: Any) -> Any:
    factors = {"format": "npy", "reader": "pread", "batch": 32, "buffer_samples": 64, **factors}
    folder = sets / f"tiny-pictures-{factors['format']}-200"
    return reading(WORKLOAD, fed(WORKLOAD, factors, ALONE, folder))


def timed(work: Any) -> list[dict[str, Any]]:
    """Read as a trial does: a warm-up, and one measured epoch; give what it said of epochs."""
    said: Any = Said()
    loader = work.epochs._loader
    try:
        loop.run(work, said, warmup=Span(steps=1), until=Span(steps=1))
    except WrongDelivery:  # the trial's process ends then, and what reads for it
        for pid in loader.pids():
            os.kill(pid, signal.SIGKILL)
        raise
    loader.close()
    return list(said.epochs)


READERS = ["pread", "threads", "async-thread", "async-process"]


@pytest.mark.parametrize("file_format", ["npy", "npz"])
@pytest.mark.parametrize("reader", READERS)
def test_the_bytes_of_all_samples_are_known_again_and_later_of_some(
    sets: Path, reader: str, file_format: str
) -> None:
    warm_up, measured = timed(activity(sets, reader=reader, format=file_format))
    is_by_pieces = reader == "pread" and file_format == "npz"
    assert warm_up["compared"] == (0 if is_by_pieces else 200)
    assert measured["compared"] == (0 if is_by_pieces else 200 % 32)


def repeated(sample: int) -> int:
    return 0


def swapped(sample: int) -> int:
    return sample ^ 1


@pytest.mark.parametrize("cheat", [repeated, swapped])
@pytest.mark.parametrize("reader", READERS)
def test_bytes_of_other_samples_are_no_result(
    sets: Path, monkeypatch: pytest.MonkeyPatch, reader: str, cheat: Callable[[int], int]
) -> None:
    """Patched where bytes are read: every name that the reader gives is the one asked for."""
    real = Dataset.stretch

    def other(self: Dataset, sample: int) -> Any:
        return real(self, cheat(sample))

    monkeypatch.setattr(Dataset, "stretch", other)
    parsed = opening.container

    def container(dataset: Dataset) -> Any:
        reader = parsed(dataset)
        honest = reader.read
        reader.read = lambda sample, into: honest(cheat(sample), into)
        return reader

    monkeypatch.setattr(opening, "container", container)
    with pytest.raises(WrongDelivery, match="other bytes than those of sample"):
        timed(activity(sets, reader=reader, shuffle="global"))


@pytest.mark.parametrize("reader", ["pread", "async-thread", "async-process"])
def test_a_shifted_slot_is_no_result(
    sets: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    def shifted(descriptor: int, into: list[memoryview], offset: int) -> int:
        return honest(descriptor, into, offset - 1)

    honest = os.preadv
    monkeypatch.setattr(os, "preadv", shifted)
    with pytest.raises(WrongDelivery, match="other bytes"):
        timed(activity(sets, reader=reader))


@pytest.mark.parametrize("fault", ["drop", "double", "reorder", "last of an epoch"])
def test_a_loader_that_cheats_is_caught(sets: Path, fault: str) -> None:
    work = activity(sets)
    honest, taken = work.epochs._loader.next, []

    def cheating() -> Batch:
        batch = honest()
        taken.append(batch)
        samples = list(batch.samples)
        if fault == "last of an epoch":
            return batch._replace(data=batch.data[::-1]) if len(taken) == 14 else batch
        changed = {"drop": samples[1:], "double": [samples[1], *samples[1:]]}
        return batch._replace(samples=changed.get(fault, samples[::-1]))

    work.epochs._loader.next = cheating
    with pytest.raises(WrongDelivery):
        timed(work)
    assert len(taken) == (14 if fault == "last of an epoch" else 1)


def test_what_is_no_sample_s_bytes_is_compared_with_none(sets: Path) -> None:
    import numpy as np

    known = Imprints(Dataset(str(sets / "tiny-pictures-npy-200")))
    decoded = np.zeros((2, 3, 8, 8), np.uint8)
    assert known.compare([0, 1], decoded) == 0
    assert known.compare([0, 1], (decoded.astype(np.float32), [1, 2])) == 0
    assert known.compare([0, 1], ()) == 0
    assert known.compare([0, 1], np.zeros((2, 3), "M8[s]")) == 0  # no buffer holds it, nor bf16


@pytest.mark.parametrize("file_format", ["npy", "npz"])
def test_a_batch_is_held_only_while_it_is_looked_at(sets: Path, file_format: str) -> None:
    """By pieces of a container no bytes are compared, in the warm-up neither."""
    work = activity(sets, format=file_format)
    epochs, held = work.epochs, []
    epochs.turn()
    honest = epochs._loader.next

    class Data(list[Any]):
        """Can be referred to weakly."""

    def watched() -> Batch:
        batch = honest()
        data = Data(batch.data)
        held.append(weakref.ref(data))
        return Batch(batch.samples, data, batch.bytes)

    epochs._loader.next = watched
    for is_warm_up in (True, False):
        epochs.is_warm_up = is_warm_up
        epochs.next()
        assert epochs.is_looked_at == is_warm_up
        assert (held.pop()() is not None) == (is_warm_up and file_format == "npy")
        epochs.look()
    epochs._loader.close()


def test_an_imprint_knows_length_ends_and_missing_pages() -> None:
    data = bytes(range(256)) * 256
    taken = imprint(memoryview(data))
    for other in (data[1:], data[:-1], data + b"\0", bytes(64) + data[64:], data[:-64] + bytes(64)):
        assert imprint(memoryview(other)) != taken
    hole = data[:8192] + bytes(4096) + data[12288:]
    assert imprint(memoryview(hole)) != taken
