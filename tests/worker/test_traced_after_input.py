"""Steps that are traced come after the same things as in the timed loop."""

from __future__ import annotations

import time

from harness.worker.attribution.steps import FEWEST, timed, wait_for_input, warmed

LONGER_S = 0.3


class Epochs:
    """Epochs of two batches."""

    def __init__(self, told: list[str]) -> None:
        self._told = told
        self.batches = 0

    def left(self) -> int:
        """Say how many batches are left."""
        return self.batches

    def turn(self) -> None:
        """Begin the next."""
        self.batches = 2
        self._told.append("turn")


class Fed:
    """An activity that waits for each batch, and says what was asked of it."""

    def __init__(self, wait_s: float = 0.0) -> None:
        self.told: list[str] = []
        self.epochs = Epochs(self.told)
        self._wait_s = wait_s

    def fetch(self) -> None:
        """Wait for a batch."""
        time.sleep(self._wait_s)
        self.epochs.batches -= 1
        self.told.append("fetch")

    def step(self) -> None:
        """Take the batch."""
        self.told.append("step")

    def sync(self) -> None:
        """End the step."""
        self.told.append("sync")


class Bare:
    """An activity without input."""

    def step(self) -> None:
        """Do nothing."""

    def sync(self) -> None:
        """Wait for nothing."""


def test_each_step_follows_its_batch_and_epochs_are_turned_over() -> None:
    fed = Fed()
    for _ in range(3):
        timed(fed)
    of_step = ["fetch", "step", "sync"]
    assert fed.told == ["turn", *of_step, *of_step, "turn", *of_step]


def test_the_wait_is_no_part_of_a_step_but_of_what_fits_into_a_second() -> None:
    fed = Fed(wait_s=LONGER_S)
    assert timed(fed) < LONGER_S
    assert warmed(fed) == FEWEST


def test_without_input_nothing_is_waited_for() -> None:
    wait_for_input(Bare())
    assert timed(Bare()) > 0
