"""Decide which trials of a run are still due; the session and every verb ask here.

Due is what the plan orders, up to the block at which repeating was stopped, unless it is complete,
or its cell is given up. A trial that was cancelled, was lost with its node or cannot be believed is
due once more; a failed one where a user asked for that, and once where fewer blocks than a
comparison needs would be whole without it, twice in a cell. Pilot blocks are ordered like others. A
cell's cold trial and its probe are never due by themselves: a session that has trials of the cell
to run makes them as well. The division of its step is: ``trials/untimed_jobs.py``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from harness.stats.answers import FEWEST_BLOCKS
from harness.store.layout import PILOT, RunPaths, TrialName
from harness.store.outcome import Ended, Outcome
from harness.store.run_directory import opening, session_log, trial_folders
from harness.store.run_directory.session_log import LogEntry
from harness.store.typed import damage, read
from harness.units import counted

ENOUGH, NOT_ENOUGH, RUN_AGAIN, RETRIED = "enough", "not enough", "run again", "failed ones retried"
"""Entries of the run's log that change what is due."""
NOT_OF_THE_CELL = (Ended.CANCELLED, Ended.NODE_LOST)
"""Ends that say nothing of a cell: such a trial is always made again."""

_LOST = (Ended.FAILED, Ended.TIMED_OUT, Ended.OUT_OF_MEMORY)
_TOPPED_UP_AT_MOST = 2
"""Lost trials of one cell that are made again unasked: it may fail for ever."""
_FAILURES = 2

Outcomes = Mapping[TrialName, Outcome]
_ORDER: Any = tuple[tuple[str, int], ...]


def next_attempt(block: int, outcomes: Outcomes) -> TrialName | None:
    """Give the attempt that a block still needs; None if it is complete."""
    tried = {name: one.ended for name, one in outcomes.items() if name.block == block}
    again = TrialName(block, max((name.attempt for name in tried), default=0) + 1)
    if not tried:
        return again
    return again if tried[max(tried)] in NOT_OF_THE_CELL else None


def given_up(outcomes: Outcomes) -> str | None:
    """Say why a cell's further trials would be a waste of time, or None."""
    if any(one.is_ok for one in outcomes.values()):
        return None
    ended = [one.ended for _, one in sorted(outcomes.items())]
    ended = [one for one in ended if one not in NOT_OF_THE_CELL]
    for one in ended:
        if one in (Ended.UNSUPPORTED, Ended.OUT_OF_MEMORY):
            return str(one)
    return f"failed {len(ended)} times" if len(ended) >= _FAILURES else None


@dataclass(frozen=True)
class TrialCounts:
    """How many of a run's planned trials are in which state."""

    total: int
    done: int
    """Complete, and no further attempt is due."""
    ok: int
    """Done, and ended well."""
    left: int
    """Due."""
    attempts: int
    """All that were made at them: a trial that was rejected, lost or cancelled is made again."""

    @property
    def skipped(self) -> int:
        """Not run, because their cell cannot succeed."""
        return self.total - self.done - self.left

    def __str__(self) -> str:
        """Say it in the words that every command and the page use."""
        words = [f"{self.done} of {counted(self.total, 'planned trial')} done, {self.left} left"]
        if self.skipped:
            words.append(f"{self.skipped} skipped, because their cell cannot succeed")
        if again := self.attempts - self.done:
            words.append(f"{again} of {self.attempts} attempts rejected, lost or cancelled")
        return "; ".join(words)


class Due:
    """The planned trials of a run and what each still needs."""

    def __init__(
        self,
        order: Sequence[tuple[str, int]],
        outcomes: Mapping[str, Outcomes],
    ) -> None:
        self._order = list(order)
        self._planned = set(order)
        self._of_cell: dict[str, dict[TrialName, Outcome]] = defaultdict(dict)
        self._of_block: dict[tuple[str, int], dict[TrialName, Outcome]] = defaultdict(dict)
        self._owed: dict[tuple[str, int], TrialName] = {}
        """Further attempts at trials that ran well but cannot be believed."""
        self._open: dict[str, set[int]] = {key: set() for key, _ in order}
        """The blocks that need an attempt, by cell."""
        self._lost: dict[str, set[int]] = {key: set() for key, _ in order}
        """The blocks that came to a bad end, by cell."""
        self._is_stopped = False
        self.left_after: Mapping[str, int] = {}
        """The block after which a cell needed no further one."""
        for key, trials in outcomes.items():
            for name, outcome in trials.items():
                self._record(key, name, outcome)
        for at in order:
            self._update_open(*at)

    def planned(self) -> Sequence[tuple[str, int]]:
        """Give the planned trials, up to where repeating was stopped."""
        return self._order

    def blocks(self) -> list[tuple[int, list[str]]]:
        """Give the blocks in the order of running, each with its cells."""
        return [
            (block, [key for key, _ in some])
            for block, some in groupby(self._order, key=lambda one: one[1])
        ]

    def needs(self, key: str, block: int) -> TrialName | None:
        """Name the attempt that a block of a cell still needs, given up or not."""
        if self.has_left(key, block):
            return None
        owed = next_attempt(block, self._of_block[key, block]) or self._owed.get((key, block))
        return owed or self._top_up(key, block)

    def attempt(self, key: str, block: int) -> TrialName:
        """Name the next attempt at a block of a cell, due or not."""
        tried = max((name.attempt for name in self._of_block[key, block]), default=0)
        return self.needs(key, block) or TrialName(block, tried + 1)

    def given_up(self, key: str) -> str | None:
        """Say why a cell's further trials would be a waste of time, or None."""
        return given_up(self._of_cell[key])

    def left(self) -> Counter[str]:
        """Count the trials that are due, by cell; a cell without any is left out."""
        return Counter(
            {
                key: len(blocks)
                for key, blocks in self._open.items()
                if blocks and self.given_up(key) is None
            }
        )

    def waiting(self) -> set[str]:
        """Name the cells that have trials to be run."""
        return set(self.left())

    def count(self) -> TrialCounts:
        """Count the trials by their state."""
        done = [at for at in self._order if at[1] not in self._open[at[0]]]
        tried = [self._of_block[at] for at in done]
        ok = sum(outcomes[max(outcomes)].is_ok for outcomes in tried)
        made = sum(len(self._of_block.get(at, ())) for at in self._order)
        return TrialCounts(len(self._order), len(done), ok, self.left().total(), made)

    def enter(self, key: str, name: TrialName, outcome: Outcome) -> None:
        """Record how a trial ended; others that were lost may be due again for that."""
        self._record(key, name, outcome)
        self._update_open(key, name.block)
        self._update_all_lost()

    def owe(self, key: str, name: TrialName) -> None:
        """Make another attempt due for a rejected trial, if it is the last attempt so far."""
        if name == max(self._of_block[key, name.block], default=None):
            self._owed[key, name.block] = TrialName(name.block, name.attempt + 1)
            self._update_open(key, name.block)

    def failed(self, keys: Container[str] | None = None) -> list[tuple[str, TrialName]]:
        """Name the trials that ended badly by a fault of their cell's, of some cells or of all."""
        return [
            (key, name)
            for key, trials in self._of_cell.items()
            for name, one in sorted(trials.items())
            if (keys is None or key in keys) and not one.is_ok and one.ended not in NOT_OF_THE_CELL
        ]

    def retry(self, key: str, name: TrialName) -> None:
        """Take a failed trial as if it had been cancelled: it is due again, its cell not given up.

        A trial that is gone, or has not failed, needs none of this.
        """
        outcome = self._of_cell[key].get(name)
        if outcome is not None and not outcome.is_ok:
            self.enter(key, name, replace(outcome, ended=Ended.CANCELLED))

    def retry_logged(self, log: Iterable[LogEntry]) -> None:
        """Make those failed trials due that earlier sessions were asked to retry."""
        for line in log:
            if line.what == RETRIED and isinstance(line.trials, tuple):
                for key, text in line.trials:
                    if (name := TrialName.parse(text)) is not None:
                        self.retry(key, name)

    def stop_after(self, block: int) -> None:
        """Drop all planned trials after a block; what was lost by then stays so."""
        self._is_stopped = True
        self._order = [one for one in self._order if one[1] <= block]
        self._planned = set(self._order)
        for blocks in self._open.values():
            blocks.intersection_update(range(block + 1))

    def leave(self, left: Mapping[str, int]) -> None:
        """Drop what is planned of cells after the block that each left with, as it was answered."""
        self.left_after = dict(left)
        self._order = [at for at in self._order if not self.has_left(*at)]
        self._planned = set(self._order)
        for key, block in left.items():
            if key in self._open:
                self._open[key].intersection_update(range(block + 1))

    def has_left(self, key: str, block: int) -> bool:
        """Whether a cell had left before a block."""
        return key in self.left_after and block > self.left_after[key]

    def _record(self, key: str, name: TrialName, outcome: Outcome) -> None:
        """Take down how a trial ended, and whether its block came to a bad end."""
        at = key, name.block
        tried = self._of_block[at]
        self._of_cell[key][name] = tried[name] = outcome
        self._owed.pop(at, None)
        if at not in self._planned or name.block == PILOT:
            return
        if tried[max(tried)].ended in _LOST:
            self._lost[key].add(name.block)
        else:
            self._lost[key].discard(name.block)

    def _update_all_lost(self) -> None:
        for one, blocks in self._lost.items():
            for lost in blocks:
                self._update_open(one, lost)

    def _top_up(self, key: str, block: int) -> TrialName | None:
        """Name the attempt that makes up for a lost trial, where too few blocks would be whole."""
        if self._is_stopped or block not in self._lost.get(key, ()):
            return None
        planned = {one for _, one in self._order} - {PILOT}
        going_on = (blocks for one, blocks in self._lost.items() if self.given_up(one) is None)
        whole = planned.difference(*going_on)
        if len(whole) >= FEWEST_BLOCKS or len(planned) < FEWEST_BLOCKS:
            return None
        made_up = {
            name.block
            for name, one in self._of_cell[key].items()
            if one.ended in _LOST and name < max(self._of_block[key, name.block])
        }
        if block in made_up or len(made_up) >= _TOPPED_UP_AT_MOST:
            return None
        return TrialName(block, max(self._of_block[key, block]).attempt + 1)

    def _update_open(self, key: str, block: int) -> None:
        if (key, block) not in self._planned:
            return  # another session's: this one was given some cells or blocks
        if self.needs(key, block) is None:
            self._open[key].discard(block)
        else:
            self._open[key].add(block)


def read_due(paths: RunPaths, outcomes: Mapping[str, Outcomes] | None = None) -> Due:
    """Read from a run's files and the decisions in its log what is due.

    ``outcomes`` are those of its complete trials, where they were read already.
    """
    plan = opening.stored_plan(paths)
    with damage(paths.plan):
        order = read(_ORDER, plan.get("order"), "order")
    if outcomes is None:
        outcomes = trial_folders.outcomes(paths)
    due, stopped, log = Due(order, outcomes), None, session_log.read_log(paths)
    left: Mapping[str, int] = {}
    due.retry_logged(log.entries)
    for line in log.entries:
        if line.what in (ENOUGH, NOT_ENOUGH):
            left = line.left
            stopped = line.block if line.what == ENOUGH else None
        elif line.what == RUN_AGAIN and (name := TrialName.parse(line.trial)) is not None:
            due.owe(line.cell, name)
    due.leave(left)
    if stopped is not None:
        due.stop_after(stopped)
    return due
