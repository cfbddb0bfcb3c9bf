"""Compare what ranks were fed with what the files hold, and name the first thing that is wrong.

Samples are known by their numbers alone, not by what a loader says of them: so what was fed in
which order is seen as the network sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from harness.data.catalogue import CONTENTS
from harness.gate.feed import distortions, orders, texts
from harness.gate.feed.known_samples import Array, KnownSamples
from harness.gate.feed.orders import Asked, Order
from harness.gate.semantics import TensorComparison
from harness.gate.tensors import folders
from harness.worker.gate.tensors import Folder

_OF_TARGETS = 1e-6
"""Vectors are stored in 32 bits, and fed so."""


@dataclass(frozen=True)
class _Fed:
    """What one rank was fed: epochs of batches."""

    inputs: list[list[Array]]
    targets: list[list[Array]]


def judge(known: KnownSamples, asked: Asked, made: Sequence[Folder]) -> TensorComparison:
    """Judge what every rank was fed; ``error`` is the largest of a sample, by its mean square."""
    refused = next((str(why) for one in made if (why := one.about["refused"]) is not None), None)
    if not all(folder.about["shapes"] for folder in made):
        return TensorComparison(None, refused or "a rank was fed nothing")
    for folder in made:
        if (wrong := _shape(known, asked.batch, folder)) is not None:
            return TensorComparison(None, wrong)
    ranks = [_read(folder) for folder in made]
    expected = known.thinned()
    worst, fed = 0.0, []
    for rank in ranks:
        order, error, wrong = _identified(known, expected, rank)
        if wrong is not None:
            return TensorComparison(worst, wrong)
        fed.append(order)
        worst = max(worst, error)
    if (wrong := orders.doubled(fed, asked)) is not None:
        return TensorComparison(worst, wrong)
    content = CONTENTS[known.spec.content]
    targets = known.targets()
    for rank, order in zip(ranks, fed, strict=True):
        found = np.concatenate([one for epoch in rank.targets for one in epoch])
        numbers = [number for epoch in order for number in epoch]
        if known.is_text:
            wrong = texts.targets(found, targets[numbers], expected[numbers], numbers)
        else:
            wrong = _targets(found, targets[numbers], numbers, content.classes)
        if wrong is not None:
            return TensorComparison(worst, wrong)
    return TensorComparison(worst, orders.misplaced(fed, asked, refused))


def order_of(known: KnownSamples, made: Folder) -> Order:
    """Give the samples of each epoch in the order in which they were fed."""
    return _identified(known, known.thinned(), _read(made))[0]


def _shape(known: KnownSamples, batch: int, made: Folder) -> str | None:
    """Say how many samples there are, or which shape they have, where it is not the network's."""
    for name, tensor in made.tensors.items():
        if tensor.shape[0] != batch:
            what = "samples" if name.endswith("input") else "targets"
            return f"a batch has {tensor.shape[0]} {what}, and {batch} are asked for"
    for shape in made.about["shapes"].values():
        if tuple(shape) != known.shape:
            is_half = len(shape) > 1 and [2 * size for size in shape[1:]] == list(known.shape[1:])
            half = "half the size: " if is_half else ""
            return (
                f"samples have {half}shape {'×'.join(map(str, shape))}, and the network takes "
                f"{'×'.join(map(str, known.shape))}"
            )
    return None


def _read(made: Folder) -> _Fed:
    places = made.about["shapes"]
    epochs = [int(place.partition("/")[0]) for place in places]
    inputs: list[list[Array]] = [[] for _ in range(max(epochs) + 1)]  # one may hold no batch
    targets: list[list[Array]] = [[] for _ in inputs]
    for epoch, place in zip(epochs, places, strict=True):
        inputs[epoch].append(folders.array(made.tensors[f"{place}/input"]))
        target = folders.array(made.tensors[f"{place}/target"])
        targets[epoch].append(target.reshape(len(target), -1))
    return _Fed(inputs, targets)


def _identified(known: KnownSamples, expected: Array, fed: _Fed) -> tuple[Order, float, str | None]:
    """Know every sample again; name what is wrong with the first that is none."""
    order: list[list[int]] = []
    worst = 0.0
    for epoch in fed.inputs:
        order.append([])
        for row in chain.from_iterable(epoch):
            off = distortions.root_mean_square(expected - row)
            number = int(np.argmin(off))
            if not off[number] <= known.tolerance:
                name = texts.name if known.is_text else distortions.name
                words = name(known, row)
                return [], worst, _named(known, fed, words, float(off[number]))
            worst = max(worst, float(off[number]))
            order[-1].append(number)
    numbers = [number for epoch in order for number in epoch]
    rows = np.concatenate([batch for epoch in fed.inputs for batch in epoch])
    if known.is_text:  # which have no factors: they are those of the files, or others
        return order, worst, None
    if words := distortions.factors(known, expected[numbers], rows):
        return [], worst, _named(known, fed, words, worst)
    return order, worst, None


def _named(known: KnownSamples, fed: _Fed, words: str, off: float) -> str:
    batches = [batch for epoch in fed.inputs for batch in epoch]
    if len(batches) > 1 and all(np.array_equal(batches[0], one) for one in batches[1:]):
        words = f"the same batch is fed again and again; {words}"
    return f"{words} ({off:.1e} off what the files hold; allowed: {known.tolerance:.1e})"


def _targets(found: Array, expected: Array, numbers: Sequence[int], classes: int) -> str | None:
    """Say what is wrong with labels, or with vectors of targets."""
    if found.shape != expected.shape:
        return f"a target has {found.shape[1]} numbers, not {expected.shape[1]}"
    wrong = np.any(np.abs(found - expected) > _OF_TARGETS * max(1.0, np.abs(expected).max()), 1)
    if not wrong.any():
        return None
    what = "label" if classes else "target"
    if np.ptp(found) == 0:
        return f"every {what} is {found.flat[0]:g}"
    apart = (found - expected)[:, 0]
    if classes and np.ptp(apart % classes) == 0:
        by = int(apart[0]) if np.ptp(apart) == 0 else int(apart[0] % classes)
        return f"labels are shifted by {'one' if by == 1 else by}"
    belonging = {tuple(one) for one in expected.tolist()}
    if all(tuple(one) in belonging for one in found.tolist()):
        return f"{what}s are those of other samples: {_first(found, expected, numbers, wrong)}"
    return _first(found, expected, numbers, wrong)


def _first(found: Array, expected: Array, numbers: Sequence[int], wrong: Array) -> str:
    at = int(np.argmax(wrong))
    came, belongs = (", ".join(f"{one:g}" for one in row[at][:3]) for row in (found, expected))
    return f"sample {numbers[at]} comes with {came}, and {belongs} belongs to it"
