"""A person who waits for trials is told while they run when others keep the machine's CPUs busy."""

from __future__ import annotations

from itertools import count, repeat
from pathlib import Path

from harness.run.crowded import CrowdTold, runnable
from harness.run.progress import Progress


class Noting:
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.shown = 0

    def progressed(self, _: Progress) -> None:
        self.shown += 1

    def trial_ended(self, *_: object) -> None:
        pass

    def doing(self, _: str) -> None:
        pass

    def noted(self, text: str) -> None:
        self.notes.append(text)


def notes_after(threads: int | None, *, rate: float | None = 100.0, seconds: int = 60) -> Noting:
    progress = Progress(Path(), 0, 1, 1, 1, "torch", "trial-1", "measure", rate, "images", None)
    shown, looks, clock = Noting(), repeat(threads), count()
    told = CrowdTold(shown, look=lambda: next(looks), clock=lambda: float(next(clock)), cpus=2)
    for _ in range(seconds):
        told.progressed(progress)
    assert shown.shown == seconds
    return shown


def test_a_busy_machine_is_named_once_with_its_load_and_what_leaves_room() -> None:
    (told,) = notes_after(7).notes
    assert told.startswith("Busy machine: 7 threads want its 2 CPUs")
    assert "--set matrix.threads=1" in told


def test_threads_of_the_run_alone_are_no_crowd() -> None:
    assert notes_after(4).notes == []


def test_nothing_is_said_before_a_trial_is_measured_or_where_nothing_is_known() -> None:
    assert notes_after(9, rate=None).notes == []
    assert notes_after(None).notes == []


def test_this_machine_says_how_many_threads_want_to_run() -> None:
    seen = runnable()
    assert seen is None or seen >= 0
