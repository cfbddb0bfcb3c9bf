"""Record what trials start from, and refuse files whose batches are fed again or wrongly."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.worker.gate import starting_point, tensors
from harness.worker.gate.tensors import Tensor
from harness.worker.input.evidence.audit import WrongDelivery

WEIGHTS = {"conv/weight": [0.5, -1.0, 2.0], "conv/bias": [0.25]}
BATCH = {"input": [1.0, 2.0], "target": [3.0]}


def made(values: Mapping[str, list[float]]) -> Iterator[tuple[str, tuple[int, ...], Any]]:
    for name, items in values.items():
        yield name, (len(items),), array("f", items)


class Activity:
    """An activity whose doors give what a test says."""

    def __init__(self, weights: Mapping[str, list[float]], batch: Mapping[str, list[float]]):
        self.state: Callable[[], Any] = lambda: made(weights)
        self.fed: Callable[[], Any] = lambda: made(batch)


@pytest.fixture
def given(tmp_path: Path) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
    writer = tensors.Writer(str(tmp_path))
    for prefix, values in (("initial/", WEIGHTS), ("first/", BATCH)):
        for name, shape, items in made(values):
            writer.put(prefix + name, shape, items, "float32")
    writer.close({})
    folder = tensors.read(str(tmp_path))
    return folder.under("initial/"), folder.under("first/")


def test_what_starts_as_given_has_one_digest_in_whatever_order(given: Any) -> None:
    one = starting_point.read(Activity(WEIGHTS, BATCH), *given)
    backward = dict(reversed([*WEIGHTS.items(), ("conv/weight/velocity", [0.0])]))
    other = starting_point.read(Activity(backward, BATCH), *given)
    assert one == other
    assert one["differs"] is None
    assert len(one["weights"] or "") == starting_point.LETTERS


def test_weights_that_are_not_as_given_are_named(given: Any) -> None:
    right = starting_point.read(Activity(WEIGHTS, BATCH), *given)
    found = starting_point.read(Activity({**WEIGHTS, "conv/bias": [0.5]}, BATCH), *given)
    assert found["differs"] == "conv/bias"
    assert found["weights"] != right["weights"]
    assert found["batch"] == right["batch"]


def test_a_batch_that_is_not_as_given_is_named(given: Any) -> None:
    found = starting_point.read(Activity(WEIGHTS, {**BATCH, "target": [0.0]}), *given)
    assert found["differs"] == "target"


def test_a_tensor_that_is_missing_is_named(given: Any) -> None:
    found = starting_point.read(Activity({"conv/bias": [0.25]}, BATCH), *given)
    assert found["differs"] == "conv/weight"


def test_without_a_door_the_batch_is_unknown(given: Any) -> None:
    activity = Activity(WEIGHTS, BATCH)
    del activity.fed
    found = starting_point.read(activity, *given)
    assert (found["batch"], found["differs"]) == (None, None)


class Fed:
    """An activity that reads files, and its epochs."""

    def __init__(
        self,
        batches: list[tuple[float, float]],
        targets: list[float],
        left: int = 9,
        loss: Callable[[float], float] = lambda batch: batch,
    ):
        self.epochs = self
        self._batches, self._targets, self._left = batches, targets, left
        self._loss_of = loss
        self.taken = 0

    def left(self) -> int:
        return self._left

    def targets(self) -> list[float]:
        return [self._targets[self.taken - 1]]

    def differs(self, inputs: memoryview) -> str | None:
        return None if inputs[0] else "what was fed is not what the files hold"

    def fetch(self) -> None:
        self.taken += 1

    def fed(self) -> Iterator[Any]:
        given, target = self._batches[self.taken - 1]
        return made({"input": [given], "target": [target]})

    def load(self, state: Any) -> None:
        assert state == "weights"
        self._loss = math.nan

    def step(self) -> None:
        self._loss = self._loss_of(self._batches[self.taken - 1][0])

    def sync(self) -> None:
        """Have waited."""

    def values(self) -> dict[str, float]:
        return {"loss": self._loss}


FRESH = [(1.0, 4.0), (2.0, 5.0), (3.0, 6.0)], [4.0, 5.0, 6.0]


def fetched(activity: Fed) -> None:
    starting_point.require_fresh_batches(activity, "weights")  # type: ignore[arg-type]


def test_batches_that_come_from_files_one_after_the_other_are_fine() -> None:
    activity = Fed(*FRESH)
    fetched(activity)
    assert activity.taken == 3


def test_a_step_that_takes_another_batch_than_was_fetched_is_refused() -> None:
    words = "from the same weights the loss is 2.302585 for each of 3 batches that were fetched"
    with pytest.raises(WrongDelivery, match=words):
        fetched(Fed(*FRESH, loss=lambda _: 2.302585))


@pytest.mark.parametrize(
    "loss", [lambda batch: min(batch, 2.0001), lambda _: math.nan, lambda _: 2.3125]
)
def test_two_of_one_loss_no_numbers_and_losses_rounded_to_bf16_say_nothing(loss: Any) -> None:
    fetched(Fed(*FRESH, loss=loss))


def test_a_first_batch_that_is_fed_again_is_refused() -> None:
    with pytest.raises(WrongDelivery, match="the same batch was fed again"):
        fetched(Fed([(1.0, 4.0), (1.0, 5.0), (3.0, 6.0)], [4.0, 5.0, 6.0]))


def test_labels_that_are_all_0_are_refused() -> None:
    with pytest.raises(WrongDelivery, match="other targets than the samples in the files"):
        fetched(Fed([(1.0, 0.0), (2.0, 0.0)], [4.0, 5.0]))


def test_numbers_that_the_files_do_not_hold_are_refused() -> None:
    with pytest.raises(WrongDelivery, match="is not what the files hold"):
        fetched(Fed([(1.0, 4.0), (0.0, 5.0)], [4.0, 5.0]))


def test_nothing_is_fetched_beyond_the_end_of_an_epoch() -> None:
    activity = Fed([], [], left=2)
    fetched(activity)
    assert activity.taken == 0
