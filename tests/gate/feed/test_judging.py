"""What is wrong with a feed has a name: numbers, targets and order, without any framework."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from harness import data, plugins
from harness.data.create import create
from harness.gate.feed import examination, judging
from harness.gate.feed.known_samples import KnownSamples
from harness.gate.feed.orders import Asked
from harness.gate.result import GatePart, Result
from harness.gate.semantics import TensorComparison
from harness.gate.tensors import folders
from harness.ranks.failure_reasons import Judgement
from harness.store.outcome import Ended
from harness.store.records import DIFFERS, EQUIVALENT, EXAMINATION_FAILED, IN_PART
from harness.worker.gate.tensors import Folder
from harness.worker.input.dataset import Dataset
from harness.worker.job import Job
from harness.worker.network.workload import Training
from tests.gate.feed.conftest import cell_of

BATCH = 4
FIRST, SECOND = [3, 1, 4, 11, 5, 9, 2, 6, 0, 7, 8, 10], [2, 7, 1, 8, 0, 4, 5, 9, 3, 6, 10, 11]
TINY = KnownSamples(examination.spec_of("tiny-pictures", "raw", 1), (3, 32, 32))
TRACES = KnownSamples(examination.spec_of("traces", "npy", 1), (4, 1600))

Distort = Callable[[np.ndarray], np.ndarray]


@cache
def truth(known: KnownSamples) -> tuple[np.ndarray, np.ndarray]:
    inputs = np.stack([known.input(number) for number in range(known.spec.samples)])
    return inputs.astype(np.float32), known.targets()


def fed(
    place: Path,
    known: KnownSamples = TINY,
    order: Sequence[Sequence[int]] = (FIRST, SECOND),
    *,
    numbers: Distort = lambda x: x,
    labels: Distort = lambda y: y,
    refused: str | None = None,
) -> Folder:
    """Write what a worker makes of an order; ``numbers`` and ``labels`` distort a whole batch."""
    inputs, targets = truth(known)
    tensors, shapes = {}, {}
    for epoch, samples in enumerate(order):
        for batch in range(len(samples) // BATCH):
            chosen = list(samples[batch * BATCH : (batch + 1) * BATCH])
            made = np.ascontiguousarray(numbers(inputs[chosen]))
            at = f"{epoch}/{batch}"
            tensors[f"{at}/input"] = made.reshape(len(made), -1).astype(np.float32)
            tensors[f"{at}/target"] = labels(targets[chosen]).astype(np.float32)
            shapes[at] = made.shape[1:]
    folders.write(place, tensors, {"shapes": shapes, "refused": refused})
    return folders.open_folder(place)


def named(
    made: Sequence[Folder],
    known: KnownSamples = TINY,
    shuffle: str = "global",
    orders: Sequence[Sequence[Sequence[int]]] = ((FIRST, SECOND),),
    keeps_order: bool = True,
) -> str | None:
    asked = Asked(BATCH, shuffle, orders, keeps_order)
    return judging.judge(known, asked, made).differs


NUMBERS: dict[str, tuple[Distort, str]] = {
    "channels": (lambda x: x[:, ::-1], "the channels are exchanged: in reverse order (BGR"),
    "two of them": (lambda x: x[:, [1, 0, 2]], "the channels are exchanged: 1, 0, 2"),
    "columns": (lambda x: x[..., ::-1], "left and right are exchanged"),
    "rows": (lambda x: x[:, :, ::-1], "samples stand upside down"),
    "axes": (lambda x: x.swapaxes(2, 3), "rows and columns are exchanged"),
    "layout": (
        lambda x: np.moveaxis(x, 1, -1).reshape(x.shape),
        "channels-last numbers are taken for channels-first",
    ),
    "the other layout": (
        lambda x: np.moveaxis(x.reshape(-1, 32, 32, 3), -1, 1),
        "channels-first numbers are taken for channels-last",
    ),
    "scale": (lambda x: 128 * x, "the numbers are 128 times what they should be"),
    "sign": (lambda x: -x, "the numbers are -1 times what they should be"),
    "mean": (lambda x: x - 0.5, "the numbers are 0.5 too small"),
    "both": (lambda x: 2 * x[:, ::-1] + 1, "(BGR for RGB); the numbers are 2 times what"),
    "one channel": (
        lambda x: x * np.array([1, 2, 1]).reshape(1, 3, 1, 1),
        "the channels are not scaled alike: those of channel 1 are 2 times what they should be",
    ),
    "size": (lambda x: x[..., ::2, ::2], "samples have half the size: shape 3×16×16, and the"),
    "resolution": (
        lambda x: x[..., ::2, ::2].repeat(2, 2).repeat(2, 3),
        "samples are blown up from half the size",
    ),
    "everything": (lambda x: 0 * x, "every number is 0 "),
    "noise": (
        lambda x: np.random.default_rng(len(x)).normal(size=x.shape),
        "the same batch is fed again and again; the numbers are those of no sample in the files",
    ),
    "digits": (lambda x: np.round(8 * x) / 8, "the numbers are near those of sample 3, not the"),
    "batch": (lambda x: x[:2], "a batch has 2 samples, and 4 are asked for"),
}


@pytest.mark.parametrize("what", NUMBERS)
def test_numbers_that_are_wrong_have_a_name(what, tmp_path) -> None:
    distort, words = NUMBERS[what]
    found = named([fed(tmp_path / "fed", numbers=distort)])
    assert found is not None
    assert words in found


LABELS: dict[str, tuple[Distort, str]] = {
    "none": (lambda y: 0 * y, "every label is 0"),
    "the next": (lambda y: y + 1, "labels are shifted by one"),
    "the next of ten": (lambda y: (y + 1) % 10, "labels are shifted by one"),
    "the one before": (lambda y: y - 1, "labels are shifted by -1"),
    "a neighbour's": (lambda y: np.roll(y, 1, 0), "labels are those of other samples: sample 3 c"),
    "too many": (lambda y: np.repeat(y, 2, 1), "a target has 2 numbers, not 1"),
}


@pytest.mark.parametrize("what", LABELS)
def test_labels_that_are_wrong_have_a_name(what, tmp_path) -> None:
    distort, words = LABELS[what]
    found = named([fed(tmp_path / "fed", labels=distort)])
    assert found is not None
    assert words in found


def test_vectors_are_held_to_their_samples(tmp_path) -> None:
    assert named([fed(tmp_path / "right", TRACES)], TRACES) is None
    rolled = fed(tmp_path / "rolled", TRACES, labels=lambda y: np.roll(y, 1, 0))
    assert str(named([rolled], TRACES)).startswith("targets are those of other samples: sample 3")
    halved = fed(tmp_path / "halved", TRACES, labels=lambda y: y / 2)
    assert "and" in str(named([halved], TRACES))
    swapped = fed(tmp_path / "back", TRACES, numbers=lambda x: x[..., ::-1])
    assert str(named([swapped], TRACES)).startswith("samples run backwards")


PLACES = "samples do not come in the order "
ONCE = FIRST[:BATCH]
ORDERS: dict[str, tuple[list[list[int]], str]] = {
    "one sample": ([[7] * 12, [7] * 12], "every sample that is fed is sample 7 of the files"),
    "one batch": ([ONCE * 3, ONCE * 3], "the first batch is fed again and again"),
    "a sample twice": ([[3, *FIRST[:-1]], SECOND], "sample 3 is fed twice in epoch 0"),
    "one order": ([FIRST, FIRST], "every epoch has the same order"),
    "no shuffle": (
        [sorted(FIRST), sorted(FIRST)],
        "samples come in the order of the files, where shuffle = global is asked",
    ),
    "another sample": ([FIRST, [12, *SECOND[1:]]], "sample 2 is left out of epoch 1"),
    "an epoch too few": ([FIRST], "epoch 1 has no batch"),
    "an epoch without a batch": ([[], SECOND], "epoch 0 has no batch"),
    "a batch too few": ([FIRST[:8], SECOND], "epoch 0 has 2 batches of 4, not 3"),
    "another order": (
        [FIRST, SECOND[::-1]],
        f"{PLACES}that the seed gives: sample 11 comes where 2 is due, in epoch 1",
    ),
}


@pytest.mark.parametrize("what", ORDERS)
def test_orders_that_are_wrong_have_a_name(what, tmp_path) -> None:
    order, words = ORDERS[what]
    assert named([fed(tmp_path / "fed", order=order)]) == words


def test_files_in_order_are_held_to_their_order(tmp_path) -> None:
    stored = list(range(12))
    asked = ((stored, stored),)
    assert named([fed(tmp_path / "right", order=asked[0])], TINY, "none", asked) is None
    backwards = fed(tmp_path / "wrong", order=[stored[::-1]] * 2)
    assert str(named([backwards], TINY, "none", asked)).startswith(
        f"{PLACES}of the files: sample 11 comes where 0 is due, in epoch 0"
    )


def test_a_reader_with_an_order_of_its_own_is_held_to_samples_alone(tmp_path) -> None:
    made = [fed(tmp_path / "fed", order=[FIRST[::-1], SECOND])]
    assert named(made, keeps_order=False) is None


def test_ranks_are_held_to_shares_of_their_own(tmp_path) -> None:
    first, second = ((FIRST[:8], SECOND[:8]), (FIRST[8:], SECOND[8:]))
    one = fed(tmp_path / "one", order=first)
    other = fed(tmp_path / "other", order=second)
    assert named([one, other], orders=(first, second)) is None
    same = fed(tmp_path / "same", order=first)
    words = "ranks 0 and 1 are fed the same samples: "
    found = named([one, same], orders=(first, second))
    assert found == f"{words}8 of 8 in epoch 0, such as sample 1"
    few = fed(tmp_path / "few", order=[FIRST[7:11], SECOND[8:]])
    found = named([one, few], orders=(first, second))
    assert found == f"{words}1 of 8 in epoch 0, such as sample 6"


def test_what_the_audit_refused_is_said_where_nothing_plainer_is_known(tmp_path) -> None:
    words = "the reader delivered 11 samples where 12 were asked for"
    assert named([fed(tmp_path / "fed", order=[FIRST, SECOND[:4]], refused=words)]) == words


def test_a_feed_that_is_refused_at_once_is_told_by_the_refusal(tmp_path) -> None:
    words = "000003.jpg cannot be decoded"
    assert named([fed(tmp_path / "fed", order=[], refused=words)]) == words
    assert named([fed(tmp_path / "empty", order=[])]) == "a rank was fed nothing"


AGAIN: dict[str, tuple[Callable[..., Folder], str | None]] = {
    "the same": (fed, None),
    "another order": (
        lambda place, known, order: fed(place, known, [one[::-1] for one in order]),
        "the same seed gives another order each time",
    ),
    "nothing": (lambda place, known, _: fed(place, known, []), "a rank was fed nothing"),
    "wrong numbers": (partial(fed, numbers=lambda x: 128 * x), "the numbers are 128 times"),
    "wrong labels": (partial(fed, labels=lambda y: 0 * y), "every label is 0"),
}


@pytest.mark.parametrize("what", AGAIN)
def test_what_comes_the_second_time_is_judged_too(what, tmp_path) -> None:
    second, words = AGAIN[what]
    feeds = iter((fed, second))
    how = {"reader": "tf-data", "format": "tfrecord", "shuffle": "file"}
    cell = cell_of(tmp_path, "tensorflow", "tinycnn", **how)

    def go(job: Job) -> Judgement:
        asked = examination.asked_of(cell, Dataset(job.paths["data"]), 1)
        next(feeds)(Path(job.paths["made"]), TINY, asked.orders[0])
        return Judgement(Ended.OK, "")

    workload = plugins.workload("tinycnn")
    assert isinstance(workload, Training)
    found = examination.examine(cell, workload, tmp_path, go).finding
    assert found is not None
    if words is None:
        assert found.differs is None
    else:
        assert str(found.differs).startswith(words)


@pytest.mark.parametrize("file", ["create.py", "sets.py", "sidecars.py", "formats/raw.py"])
def test_what_writes_the_files_decides_a_result(file, tmp_path, monkeypatch) -> None:
    decided = examination.code_digest()
    copy = Path(shutil.copytree(Path(data.__file__).parent, tmp_path / "data"))
    monkeypatch.setattr(data, "__file__", str(copy / "__init__.py"))
    assert examination.code_digest() == decided
    with (copy / file).open("a") as changed:
        changed.write("changed")
    assert examination.code_digest() != decided


def test_of_a_users_own_pictures_others_stand_for_them(tmp_path) -> None:
    cell = cell_of(tmp_path, "torch", "tinycnn", format="raw")
    assert examination.content_of(cell) == "tiny-pictures"
    assert examination.content_of(replace(cell, own_data="/data")) == "small-pictures"


@pytest.mark.parametrize("form", ["raw", "npy", "tfrecord"])
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("shuffle", ["none", "global", "file"])
def test_what_is_asked_for_shows_a_shuffle_and_leaves_whole_batches(
    form, ranks, shuffle, tmp_path
) -> None:
    cell = cell_of(tmp_path, "torch", "tinycnn", format=form, shuffle=shuffle)
    spec = examination.spec_of("tiny-pictures", form, ranks)
    create(spec, tmp_path / "set", doing=lambda _: None)
    asked = examination.asked_of(cell, Dataset(str(tmp_path / "set")), ranks)
    assert all(len(one) % BATCH == 0 < len(one) for rank in asked.orders for one in rank)
    assert all(len(set(map(len, shares))) == 1 for shares in zip(*asked.orders, strict=True))
    for first, second in asked.orders:
        assert (first == second) == (shuffle == "none")
        assert shuffle == "none" or first != sorted(first)


def test_the_result_says_what_is_fed(tmp_path) -> None:
    cell = cell_of(tmp_path, "torch", "tinycnn", format="raw")
    good = Result(EQUIVALENT, "float64, 3e-11")

    def joined(part: GatePart) -> Result:
        return examination.joined(good, part, cell)

    assert str(joined(GatePart(TensorComparison(0.0)))) == (
        "equivalent (float64, 3e-11; fed exactly the files)"
    )
    near = joined(GatePart(TensorComparison(0.01)))
    assert near.detail == "float64, 3e-11; fed what the files hold within 1e-02"
    wrong = joined(GatePart(TensorComparison(0.0, "labels are shifted by one")))
    assert str(wrong) == "differs at its feed (dataloader): labels are shifted by one"
    assert wrong.state == DIFFERS
    unseen = joined(GatePart(None, "nobody sees its batches", is_unsupported=True))
    assert (unseen.state, unseen.not_shown) == (
        IN_PART,
        ("what it is fed: nobody sees its batches",),
    )
    crashed = joined(GatePart(None, "it fell over"))
    assert (crashed.state, crashed.detail) == (EXAMINATION_FAILED, "its feed: it fell over")
