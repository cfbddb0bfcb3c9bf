"""Texts that a network is fed: what is wrong with them has a name, and no reader feeds others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.data.create import create
from harness.gate.feed import examination, judging
from harness.gate.feed.known_samples import KnownSamples
from harness.gate.feed.orders import Asked
from harness.gate.tensors import folders
from harness.worker.input.dataset import Dataset
from tests.gate.feed.conftest import cell_of

LENGTH, BATCH = 64, 4
KNOWN = KnownSamples(examination.spec_of("tiny-tokens", "uint16", 1, LENGTH), (LENGTH,))
ORDERS = [[3, 1, 4, 11, 5, 9, 2, 6, 0, 7, 8, 10], [2, 7, 1, 8, 0, 4, 5, 9, 3, 6, 10, 11]]

Distort = Callable[[np.ndarray], np.ndarray]


def same(values: np.ndarray) -> np.ndarray:
    return values


def named(place: Path, tokens: Distort = same, labels: Distort = same) -> str | None:
    """Judge a feed of which every batch was distorted: a text with the token behind it."""
    every = KNOWN.tokens()
    tensors, shapes = {}, {}
    for epoch, order in enumerate(ORDERS):
        for batch in range(len(order) // BATCH):
            texts = order[batch * BATCH : (batch + 1) * BATCH]
            rows = np.stack([every[one * LENGTH : (one + 1) * LENGTH + 2] for one in texts])
            at = f"{epoch}/{batch}"
            tensors[f"{at}/input"] = tokens(rows)[:, :LENGTH].astype(np.float32)
            tensors[f"{at}/target"] = labels(rows)[:, 1 : LENGTH + 1].astype(np.float32)
            shapes[at] = [LENGTH]
    folders.write(place, tensors, {"shapes": shapes, "refused": None})
    asked = Asked(BATCH, "global", [ORDERS])
    return judging.judge(KNOWN, asked, [folders.open_folder(place)]).differs


def test_the_texts_of_the_files_are_fine(tmp_path: Path) -> None:
    assert KNOWN.samples == 3 * BATCH + 1
    assert named(tmp_path) is None


TOKENS: dict[str, tuple[Distort, str]] = {
    "byte order": (lambda x: x.byteswap(), "the bytes of each token are exchanged (big-endian"),
    "one late": (lambda x: np.roll(x, -1, 1), "a text begins 1 token late, at token 193"),
    "the same for ever": (lambda x: 0 * x + 7, "every token is 7"),
    "backwards": (lambda x: x[:, LENGTH - 1 :: -1], "texts run backwards"),
    "noise": (lambda x: x[:, ::-1] ^ 1, "the tokens are those of no text in the files"),
}


@pytest.mark.parametrize("what", TOKENS)
def test_tokens_that_are_wrong_have_a_name(what: str, tmp_path: Path) -> None:
    distort, words = TOKENS[what]
    assert words in str(named(tmp_path, tokens=distort))


LABELS: dict[str, tuple[Distort, str]] = {
    "not shifted": (lambda x: np.roll(x, 1, 1), "labels are not shifted: the token that is fed is"),
    "by two": (lambda x: np.roll(x, -1, 1), "labels are shifted by two"),
    "byte order": (lambda x: x.byteswap(), "the bytes of each label are exchanged"),
    "none": (lambda x: 0 * x, "every label is 0"),
    "a neighbour's": (lambda x: np.roll(x, 1, 0), "labels are those of other texts: in text 3 "),
    "one of them": (
        lambda x: np.where(np.arange(x.shape[1]) == 9, x ^ 1, x),
        "in text 3 ",
    ),
    "too few": (lambda x: x[:, :LENGTH], "a text has 63 labels, not 64"),
}


@pytest.mark.parametrize("what", LABELS)
def test_labels_that_are_wrong_have_a_name(what: str, tmp_path: Path) -> None:
    distort, words = LABELS[what]
    assert words in str(named(tmp_path, labels=distort))


def test_of_a_users_own_tokens_made_ones_stand_for_them(tmp_path: Path) -> None:
    cell = replace(cell_of(tmp_path, "torch", "tinygpt"), own_data="/data")
    assert cell.factors["format"] == "uint16"
    assert examination.content_of(cell) == "tiny-tokens"


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("shuffle", ["none", "global"])
def test_ranks_are_asked_for_whole_batches_of_texts_of_their_own(
    ranks: int, shuffle: str, tmp_path: Path
) -> None:
    cell = cell_of(tmp_path, "torch", "tinygpt", shuffle=shuffle)
    spec = examination.spec_of("tiny-tokens", "uint16", ranks, LENGTH)
    create(spec, tmp_path / "set", doing=lambda _: None)
    asked = examination.asked_of(cell, Dataset(str(tmp_path / "set"), LENGTH), ranks)
    for shares in zip(*asked.orders, strict=True):
        read = [text for share in shares for text in share]
        assert len(set(read)) == len(read) == 3 * BATCH * ranks
    for first, second in asked.orders:
        assert (first == second) == (shuffle == "none")


READERS = {
    "torch": ("dataloader", "threads", "pread", "mmap", "direct", "async-thread", "async-process"),
    "tensorflow": ("threads", "pread", "mmap", "direct", "async-thread"),
    "keras": ("threads", "async-thread"),
    "jax": ("threads", "pread", "mmap", "direct", "async-thread"),
}
IN_CI = {("torch", "dataloader"), ("jax", "threads"), ("tensorflow", "threads")}


@pytest.mark.framework
@pytest.mark.parametrize(
    ("framework", "reader"),
    [
        pytest.param(name, one, marks=[] if (name, one) in IN_CI else [pytest.mark.long])
        for name, readers in READERS.items()
        for one in readers
    ],
)
def test_a_reader_feeds_the_texts_of_the_file(framework: str, reader: str, fed) -> None:
    part = fed(framework, "tinygpt", reader=reader, shuffle="global")
    assert part.finding is not None, part.why
    assert part.finding.differs is None
    assert part.finding.error == 0


@pytest.mark.framework
@pytest.mark.long
@pytest.mark.parametrize("workload", ["tinyllama", "gpt2-124m"])
def test_other_networks_of_texts_are_fed_alike(workload: str, fed) -> None:
    part = fed("torch", workload, shuffle="file")
    assert part.finding is not None, part.why
    assert part.finding.differs is None
