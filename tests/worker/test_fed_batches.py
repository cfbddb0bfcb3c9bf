"""Write what an activity is fed, batch by batch, and what its own audit refuses."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.worker.contracts import Unsupported
from harness.worker.gate import fed_batches, tensors
from harness.worker.gate.tensors import Folder, Writer
from harness.worker.input.evidence.audit import WrongDelivery


class Fed:
    """An activity of two batches an epoch, each of two samples of 2 × 5 numbers."""

    def __init__(self, refuses: int = 99) -> None:
        self.epochs = self
        self.turned = self.taken = 0
        self._refuses = refuses

    def turn(self) -> None:
        if self.turned == self._refuses:
            raise WrongDelivery("1 missing (3)")
        self.turned += 1

    def left(self) -> int:
        return 2

    def fetch(self) -> None:
        self.taken += 1

    def fed(self) -> Iterator[Any]:
        yield "input", (2, 2, 5), array("f", range(100 * self.taken, 100 * self.taken + 20))
        yield "target", (2,), array("f", [self.taken, 0])


def made(place: Path, activity: Any, thin: int = 0, rank: int = 0) -> Folder:
    given = Writer(str(place / "given"))
    given.close({"epochs": 2, "thin": thin})
    fed_batches.examine(activity, str(place / "given"), str(place / "made"), rank)
    return tensors.read(str(place / ("made" if not rank else f"made.{rank}")))


def test_whole_epochs_are_written_as_they_are_fed(tmp_path: Path) -> None:
    folder = made(tmp_path, Fed())
    assert list(folder.about["shapes"]) == ["0/0", "0/1", "1/0", "1/1"]
    assert folder.about == {
        "shapes": {place: [2, 5] for place in folder.about["shapes"]},
        "refused": None,
    }
    assert list(folder.tensors["1/0/input"].items()) == list(range(300, 320))
    assert folder.tensors["1/0/input"].shape == (2, 10)
    assert list(folder.tensors["0/1/target"].items()) == [2.0, 0.0]


def test_of_large_samples_every_nth_number_is_written(tmp_path: Path) -> None:
    folder = made(tmp_path, Fed(), thin=4)
    assert list(folder.tensors["0/0/input"].items()) == [100, 103, 106, 109, 110, 113, 116, 119]


def test_a_rank_writes_to_a_folder_of_its_own(tmp_path: Path) -> None:
    assert made(tmp_path, Fed(), rank=1).about["refused"] is None


@pytest.mark.parametrize(("turns", "batches"), [(0, 0), (1, 2), (2, 4)])
def test_what_the_audit_refuses_ends_the_examination_with_its_words(
    turns: int, batches: int, tmp_path: Path
) -> None:
    folder = made(tmp_path, Fed(refuses=turns))
    assert folder.about["refused"] == "1 missing (3)"
    assert len(folder.about["shapes"]) == batches


@pytest.mark.parametrize("door", ["fetch", "fed", "epochs"])
def test_an_activity_that_shows_no_batches_is_told_so(door: str, tmp_path: Path) -> None:
    activity = Fed()
    setattr(activity, door, None)
    with pytest.raises(Unsupported, match="does not show the batches that it trains on"):
        made(tmp_path, activity)
