"""Draw a session as it goes: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.cli.output import note, visible
from harness.run.crowded import CrowdTold
from harness.run.progress import Progress, ProgressListener
from harness.store.layout import RunPaths
from harness.store.outcome import Outcome
from harness.units import duration

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_PLAIN_EVERY_S = 10.0
_QUIET_S = 2.0


def _position(progress: Progress) -> str:
    return f"{progress.done}/{progress.total} trials"


def _now(progress: Progress) -> str:
    words = [progress.label]
    if progress.rate is not None:
        words.append(f"{progress.rate:.3g} {progress.unit}/s")
    elif progress.phase is not None:
        words.append(progress.phase)
    if progress.turn:
        words.append(progress.turn)
    return "  ".join(words)


def _left(progress: Progress) -> str:
    return "" if progress.left_s is None else f"{duration(progress.left_s)} left"


def _failure(progress: Progress, outcome: Outcome) -> str:
    took = duration(outcome.seconds)
    text = f"{progress.label}: {outcome.ended} in {outcome.trial} after {took}\n  {outcome.reason}"
    directory = RunPaths(progress.run).cell(outcome.cell_key) / outcome.trial
    # The reason names the file where one rank is to blame.
    return text if str(directory) in outcome.reason else f"{text}\n  Log: {directory}"


class Lines:
    """Write a line a trial, and what goes on now and then."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def progressed(self, progress: Progress) -> None:
        """Say where the session stands if nothing was said for a while."""
        if time.monotonic() - self._last >= _PLAIN_EVERY_S:
            self._say(f"{_position(progress)}  {_now(progress)}  {_left(progress)}")

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        """Say how each trial ended."""
        took = duration(outcome.seconds)
        self._say(
            f"{_position(progress)}  {progress.label}  {outcome.trial}: {outcome.ended} in {took}  "
            f"{_left(progress)}"
        )
        if not outcome.is_ok:
            self._say(_failure(progress, outcome))

    def doing(self, text: str) -> None:
        """Say what goes on if nothing was said for a moment."""
        if time.monotonic() - self._last >= _QUIET_S:
            self._say(f"  {text} …")

    def noted(self, text: str) -> None:
        """Say what a person should know."""
        self._say(text)

    def _say(self, text: str) -> None:
        note(text.rstrip())
        self._last = time.monotonic()


class Live:
    """Keep one bar up to date; what fails stays above it."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=None, now="", left="")

    def progressed(self, progress: Progress) -> None:
        """Redraw the line."""
        block = f"block {progress.block}/{progress.blocks}" if progress.block else "filling caches"
        self._bar.update(
            self._task,
            completed=progress.done,
            total=progress.total,
            description=f"{_position(progress)}  {block}",
            now=visible(_now(progress)),
            left=_left(progress),
        )

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        """Redraw the line; keep what went wrong."""
        self.progressed(progress)
        if not outcome.is_ok:
            self.noted(_failure(progress, outcome))

    def doing(self, text: str) -> None:
        """Redraw the line."""
        self._bar.update(self._task, description="before the first trial", now=visible(text))

    def noted(self, text: str) -> None:
        """Write above the line."""
        self._bar.console.print(visible(text), markup=False, highlight=False, soft_wrap=True)


@contextmanager
def watching() -> Iterator[ProgressListener]:
    """Give the listener that shows a session's progress."""
    if not sys.stderr.isatty():
        yield CrowdTold(Lines())
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        TextColumn("{task.fields[now]}", markup=False),
        TextColumn("{task.fields[left]}", markup=False),
    )
    with Bar(*columns, console=Console(stderr=True), refresh_per_second=4) as bar:
        yield CrowdTold(Live(bar))
