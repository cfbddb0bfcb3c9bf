"""Decide from the outcomes so far what is still to be run, and what is given up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from harness.plan.plan import Plan
from harness.ranks.outcome import CANCELLED, NODE_LOST, OK, OUT_OF_MEMORY, UNSUPPORTED
from harness.stats.repeat import Decision
from harness.store import run_directory as store
from harness.store.layout import RunPaths, TrialName, TrialPaths

Rejects = Callable[[TrialPaths], str | None]
"""Reads a finished trial and says why it must be run again, or None."""

_LOST_AT_MOST = 2
_FAILURES = 2

Outcomes = Mapping[TrialName, Mapping[str, Any]]


def next_attempt(block: int, outcomes: Outcomes) -> TrialName | None:
    """Name the attempt that a block still needs, or None: what is complete is never repeated."""
    tried = {name: one["outcome"] for name, one in outcomes.items() if name.block == block}
    again = TrialName(block, max((name.attempt for name in tried), default=0) + 1)
    if not tried:
        return again
    last = tried[max(tried)]
    lost = sum(outcome == NODE_LOST for outcome in tried.values())
    if last == CANCELLED or (last == NODE_LOST and lost < _LOST_AT_MOST):
        return again
    return None


def given_up(outcomes: Outcomes) -> str | None:
    """Say why a cell's further trials would be a waste of time, or None."""
    if any(one["outcome"] == OK for one in outcomes.values()):
        return None
    ended = [one for _, one in sorted(outcomes.items()) if one["outcome"] != CANCELLED]
    for one in ended:
        if one["outcome"] in (UNSUPPORTED, OUT_OF_MEMORY):
            return str(one["outcome"])
    return f"failed {len(ended)} times" if len(ended) >= _FAILURES else None


@dataclass
class TimeLeft:
    """Estimates how long the rest takes, from what earlier trials of the same cells took."""

    guesses_s: Mapping[str, float]
    left: Counter[str]
    """Trials still to run, by cell."""
    _took: dict[str, tuple[float, int]] = field(default_factory=dict)
    """Seconds that the trials of a cell took together, and how many they were."""

    def took(self, key: str, seconds: float) -> None:
        """Learn from a trial."""
        together_s, count = self._took.get(key, (0.0, 0))
        self._took[key] = together_s + seconds, count + 1

    def seconds(self, running: str, elapsed_s: float) -> float:
        """Add up what is left, less what the running trial of a cell has already taken."""
        whole = sum(self._each(key) * count for key, count in self.left.items())
        return max(0.0, whole - min(elapsed_s, self._each(running)))

    def _each(self, key: str) -> float:
        if key not in self._took:
            return self.guesses_s[key]
        together_s, count = self._took[key]
        return together_s / count


def guess_s(plan: Plan, start_up_s: float) -> float:
    """Guess what a trial takes before any has run; steps are taken for tenths of a second."""
    spans = (plan.measure.warmup, plan.measure.until)
    measured_s = sum(span.seconds or (span.steps or 0) * 0.1 for span in spans)
    return start_up_s + measured_s


class Ledger:
    """What a run has, owes and no longer needs; everything follows from what is stored."""

    def __init__(
        self, paths: RunPaths, plan: Plan, rejects: Rejects, noted: Callable[[str], None]
    ) -> None:
        self._paths = paths
        self._plan = plan
        self._rejects = rejects
        self._noted = noted
        self._outcomes: dict[str, dict[TrialName, dict[str, Any]]] = store.outcomes(paths)
        self._owed: dict[tuple[str, int], TrialName] = {}
        """Further attempts at trials that ran well but cannot be believed."""
        self._last_block: int | None = None
        """Where it was decided to stop repeating."""
        self._due = list(plan.order)

    def take_up(self) -> None:
        """Decide again all that an earlier session had decided, or owed when it was killed."""
        ran = [
            (one.get("position") or 0, key, name)
            for key, trials in self._outcomes.items()
            for name, one in trials.items()
        ]
        if ran:  # each trial was judged before the next began, so only the last may not have been
            _, key, name = max(ran)
            self._judge(key, name)
        for block, keys in self.blocks():
            if any(self._waits(key, block) for key in keys) or self.is_enough(block):
                return

    def positions(self) -> int:
        """Count the trials that ran."""
        return sum(map(len, self._outcomes.values()))

    def due(self) -> list[tuple[str, int]]:
        """Give the planned trials, up to where repeating was stopped."""
        return self._due

    def blocks(self) -> list[tuple[int, list[str]]]:
        """Give the blocks in the order of running, each with its cells."""
        return [
            (block, [key for key, _ in some])
            for block, some in groupby(self.due(), key=lambda one: one[1])
        ]

    def needs(self, key: str, block: int) -> TrialName | None:
        """Name the attempt that a block of a cell still needs."""
        return next_attempt(block, self._of(key)) or self._owed.get((key, block))

    def given_up(self, key: str) -> str | None:
        """Say why a cell's further trials would be a waste of time, or None."""
        return given_up(self._of(key))

    def final(self, key: str, block: int) -> Mapping[str, Any] | None:
        """Give the last outcome of a block that needs no further attempt."""
        if self.needs(key, block) is not None:
            return None
        tried = {name: one for name, one in self._of(key).items() if name.block == block}
        return tried[max(tried)]

    def waiting(self) -> set[str]:
        """Name the cells that have trials to be run."""
        return {key for key, block in self.due() if self.needs(key, block) is not None}

    def left(self) -> Counter[str]:
        """Count the trials still to be run, by cell."""
        return Counter(key for key, block in self.due() if self.needs(key, block) is not None)

    def enter(self, key: str, name: TrialName, outcome: dict[str, Any]) -> None:
        """Take down how a trial ended; what cannot be believed is owed another attempt."""
        self._of(key)[name] = outcome
        self._judge(key, name)

    def is_enough(self, block: int) -> bool:
        """Decide after a block whether to stop repeating, and say why."""
        if self._last_block is not None:
            return block >= self._last_block
        decision = enough(self._paths, self._plan, block)
        if decision is None:
            return False
        if decision.stop or block in self._plan.measure.looks:
            what = "enough" if decision.stop else "not enough"
            store.log(self._paths, what, block=block, why=decision.why, wide=list(decision.wide))
        if decision.stop:
            self._last_block = block
            self._due = [one for one in self._plan.order if one[1] <= block]
            self._noted(f"No further blocks: {decision.why}.")
        return decision.stop

    def _judge(self, key: str, name: TrialName) -> None:
        self._owed.pop((key, name.block), None)
        if self._of(key)[name]["outcome"] != OK or name.attempt > self._plan.measure.reruns:
            return
        if self._plan.platform.is_simulated:
            return  # nothing disturbs a model
        why = self._rejects(self._paths.trial(key, name))
        if why is None:
            return
        store.log(self._paths, "run again", cell=key, trial=str(name), why=why)
        self._noted(f"{self._plan.cell(key).label}: {name} is run again: {why}")
        self._owed[key, name.block] = TrialName(name.block, name.attempt + 1)

    def _of(self, key: str) -> dict[TrialName, dict[str, Any]]:
        return self._outcomes.setdefault(key, {})

    def _waits(self, key: str, block: int) -> bool:
        return self.needs(key, block) is not None and self.given_up(key) is None


_ORIGINS = ("measured", "simulated", "stand-in", "replayed")


def enough(paths: RunPaths, plan: Plan, done: int) -> Decision | None:
    """Decide after ``done`` blocks; None where there is nothing to decide.

    Between looks only the budget can end a study, so that the trials are read at looks alone.
    """
    measure = plan.measure
    is_look = done in measure.looks
    if measure.until_interval is None or done < measure.trials:
        return None
    if not is_look and measure.budget_s is None:
        return None
    from harness.analysis import stopping
    from harness.analysis.analyse import estimate_cells
    from harness.store.dataset import Dataset

    dataset = Dataset([paths.root], origins=_ORIGINS)
    (run,) = dataset.runs
    cells = estimate_cells(dataset)[run.info.name]
    return stopping.judge(run, dataset.trials, cells, done)
