"""Texts out of a file of tokens: each once in an epoch, with the token behind each of its own."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import plugins
from harness.data.user_data import adopt
from harness.worker.contracts import Unsupported
from harness.worker.input.dataset import Dataset, texts_of
from harness.worker.input.epochs import Epochs
from harness.worker.input.evidence import stored_numbers
from harness.worker.input.open import container, loader_of, opened
from harness.worker.place import Place
from tests.scales import fed

pytestmark = pytest.mark.io

LENGTH = 64
COUNT = 40
TOKENS = np.random.default_rng(1).integers(0, 512, COUNT * LENGTH + 1 + 17).astype("<u2")


def quiet(_: str) -> None:
    pass


def file_of(place: Path, held: np.ndarray) -> Path:
    place.mkdir(exist_ok=True)
    (place / "train.bin").write_bytes(held.tobytes())
    return adopt(place / "train.bin", place / "ours", doing=quiet).folder


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 300), st.integers(1, 40))
def test_texts_join_without_a_token_lost_or_doubled(
    tmp_path: Path, count: int, length: int
) -> None:
    held = np.arange(count, dtype="<u2")
    dataset = Dataset(str(file_of(tmp_path, held)), length)
    reader = container(dataset)
    assert dataset.samples == texts_of(count, length)
    into = memoryview(bytearray(2 * (length + 1)))
    inputs, targets = [], []
    for text in range(dataset.samples):
        assert reader.read(text, into) == len(into)
        one = np.frombuffer(into, "<u2").tolist()
        inputs += one[:-1]
        targets += one[1:]
    whole = dataset.samples * length
    assert inputs == list(range(whole))
    assert targets == list(range(1, whole + 1))
    assert count - 1 - whole < length  # and what is left is less than a text


def rank_of(folder: Path, rank: int, size: int, **factors: Any) -> Epochs:
    workload = plugins.workload("tinygpt")
    factors = {"format": "uint16", "reader": "threads", "batch": 4, "shuffle": "global", **factors}
    place = Place(rank, size, rank, size, "here", "none")
    feed = fed(workload, factors, place, folder)
    dataset, files = opened(feed)
    loader = loader_of(dataset, files, feed.batch_per_rank)
    return Epochs(dataset, files, loader, feed.batch_per_rank, whole=False)


def epoch(epochs: Epochs) -> dict[int, bytes]:
    epochs.turn()
    found: dict[int, bytes] = {}
    while epochs.left():
        batch = epochs.next()
        for sample, one in zip(batch.samples, batch.data, strict=True):
            assert sample not in found
            found[sample] = bytes(one)
    return found


@pytest.mark.parametrize("reader", ["pread", "mmap", "direct", "threads", "async-thread"])
@pytest.mark.parametrize("shuffle", ["none", "global", "file"])
def test_every_reader_delivers_every_text_of_an_epoch(
    reader: str, shuffle: str, tmp_path: Path
) -> None:
    folder = file_of(tmp_path / "theirs", TOKENS)
    how = {"reader": reader, "shuffle": shuffle, "buffer_samples": 8, "reader_threads": 3}
    try:
        epochs = rank_of(folder, 0, 1, **how)
    except Unsupported as why:  # memory knows no O_DIRECT
        pytest.skip(str(why))
    first, second = epoch(epochs), epoch(epochs)
    assert (list(first) == list(second)) == (shuffle == "none")
    for found in (first, second):
        assert sorted(found) == list(range(COUNT))
        for text, data in found.items():
            wanted = TOKENS[text * LENGTH : (text + 1) * LENGTH + 1]
            assert data == wanted.tobytes()


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("shuffle", ["none", "global"])
def test_ranks_share_the_texts_of_an_epoch(size: int, shuffle: str, tmp_path: Path) -> None:
    folder = file_of(tmp_path / "theirs", TOKENS)
    shares = [epoch(rank_of(folder, rank, size, shuffle=shuffle)) for rank in range(size)]
    read = [text for share in shares for text in share]
    assert len(set(read)) == len(read) == COUNT // size // 4 * 4 * size


def test_a_file_that_became_shorter_ends_the_trial(tmp_path: Path) -> None:
    folder = file_of(tmp_path / "theirs", TOKENS)
    (tmp_path / "theirs" / "train.bin").write_bytes(TOKENS[: 3 * LENGTH].tobytes())
    with pytest.raises(EOFError, match="ends before its sample does"):
        epoch(rank_of(folder, 0, 1))


def test_too_few_texts_for_a_batch_are_told(tmp_path: Path) -> None:
    folder = file_of(tmp_path / "theirs", TOKENS[: 3 * LENGTH + 1])
    with pytest.raises(ValueError, match="3 samples over 1 ranks leave no batch of 4"):
        epoch(rank_of(folder, 0, 1))


def batch(*texts: int, late: int = 0) -> array[float]:
    starts = [text * LENGTH + late for text in texts]
    return array("f", np.concatenate([TOKENS[one : one + LENGTH] for one in starts]).tolist())


def test_what_a_trial_was_fed_is_held_to_the_file_token_by_token(tmp_path: Path) -> None:
    dataset = Dataset(str(file_of(tmp_path / "theirs", TOKENS)), LENGTH)
    right = batch(7, 2)
    assert stored_numbers.differs(dataset, [7, 2], memoryview(right)) is None
    assert stored_numbers.targets(dataset, [7, 2]) == batch(7, 2, late=1).tolist()
    near = array("f", right)
    near[LENGTH + 5] += 1
    told = stored_numbers.differs(dataset, [7, 2], memoryview(near))
    assert told is not None
    assert "sample 2 is 1.0e+00 off" in told
    late = stored_numbers.differs(dataset, [7, 2], memoryview(batch(7, 2, late=1)))
    assert str(late).startswith("what was fed is not what the files hold: sample 7")
