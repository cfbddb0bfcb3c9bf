"""Record how trials ended, judge them, and decide which trials become due."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.plan.plan import Plan
from harness.stats.repetition.repeat import Decision
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.outcome import Outcome
from harness.store.run_directory import session_log, trial_folders
from harness.store.run_directory.due import ENOUGH, NOT_ENOUGH, RETRIED, RUN_AGAIN, Due

_ORIGINS = ("measured", "simulated", "stand-in", "replayed")

Rejects = Callable[[TrialPaths], str | None]
"""Reads a finished trial and says why it must be run again, or None."""


@dataclass
class TimeLeft:
    """Estimates how long the rest takes, from what earlier trials of the same cells took."""

    guesses_s: Mapping[str, float]
    _took: dict[str, tuple[float, int]] = field(default_factory=dict)
    """Seconds that the trials of a cell took together, and how many they were."""

    def took(self, key: str, seconds: float) -> None:
        """Record the duration of one trial."""
        together_s, count = self._took.get(key, (0.0, 0))
        self._took[key] = together_s + seconds, count + 1

    def seconds(self, left: Mapping[str, int], running: str, elapsed_s: float) -> float:
        """Add up the trials left of each cell, less what a cell's running trial has taken."""
        whole = sum(self._each(key) * count for key, count in left.items())
        return max(0.0, whole - min(elapsed_s, self._each(running)))

    def _each(self, key: str) -> float:
        if key not in self._took:
            return self.guesses_s[key]
        together_s, count = self._took[key]
        return together_s / count


def guess_s(plan: Plan, start_up_s: float) -> float:
    """Estimate a trial's duration before any has run; a step is assumed to take 0.1 s."""
    spans = (plan.measure.warmup, plan.measure.until)
    measured_s = sum(span.seconds or (span.steps or 0) * 0.1 for span in spans)
    return start_up_s + measured_s


class Ledger:
    """Records how trials end and which trials become due; it follows from the run's files."""

    def __init__(
        self, paths: RunPaths, plan: Plan, rejects: Rejects, noted: Callable[[str], None]
    ) -> None:
        self._paths = paths
        self._plan = plan
        self._rejects = rejects
        self._noted = noted
        self._ended = trial_folders.outcomes(paths)
        self.due = Due(plan.order, self._ended)
        log = session_log.read_log(paths)
        for one in log.damaged:
            noted(one)
        self.due.retry_logged(log.entries)
        self._last_block: int | None = None
        """Where it was decided to stop repeating."""

    def repeat_decisions(self) -> None:
        """Make an earlier session's decisions again, and those that it was killed before."""
        ran = [
            (one.position, key, name)
            for key, trials in self._ended.items()
            for name, one in trials.items()
        ]
        if ran:  # each trial was judged before the next began, so only the last may not have been
            _, key, name = max(ran)
            self._judge(key, name, self._ended[key][name])
        for block, keys in self.due.blocks():
            if self.waits(keys, block) or self.is_enough(block):
                return

    def retry_failed(self, keys: Container[str] | None) -> list[str]:
        """Make failed trials due again, and log it for later sessions; name their cells."""
        failed = self.due.failed(keys)
        if failed:
            trials = [[key, str(name)] for key, name in failed]
            session_log.log(self._paths, RETRIED, trials=trials)
        for key, name in failed:
            self.due.retry(key, name)
        return sorted({key for key, _ in failed})

    def positions(self) -> int:
        """Count the trials that had ended when this session began."""
        return sum(map(len, self._ended.values()))

    def enter(self, key: str, name: TrialName, outcome: Outcome) -> None:
        """Record how a trial ended; a rejected trial becomes due again."""
        self.due.enter(key, name, outcome)
        self._judge(key, name, outcome)

    def blocks(self) -> Iterator[tuple[int, list[str]]]:
        """Give the blocks, and then again those in which a trial has become due meanwhile."""
        for block, keys in self.due.blocks():
            yield block, [key for key in keys if not self.due.has_left(key, block)]
        for block, keys in self.due.blocks():
            if self.waits(keys, block):
                yield block, keys

    def is_enough(self, block: int) -> bool:
        """Decide after a block whether to stop repeating, and log the reason."""
        if self._last_block is not None:
            return block >= self._last_block
        decision = enough(self._paths, self._plan, block)
        if decision is None:
            return False
        if decision.stop or block in self._plan.measure.looks:
            what = ENOUGH if decision.stop else NOT_ENOUGH
            session_log.log(
                self._paths,
                what,
                block=block,
                why=decision.why,
                wide=list(decision.wide),
                left=dict(decision.left),
            )
            self.due.leave(decision.left)
        if decision.stop:
            self._last_block = block
            self.due.stop_after(block)
            self._noted(f"No further blocks: {decision.why}.")
        return decision.stop

    def _judge(self, key: str, name: TrialName, outcome: Outcome) -> None:
        if not outcome.is_ok or name.attempt > self._plan.measure.reruns:
            return
        if self._plan.platform.is_simulated:
            return  # a model is never disturbed
        why = self._rejects(self._paths.trial(key, name))
        if why is None:
            return
        session_log.log(self._paths, RUN_AGAIN, cell=key, trial=str(name), why=why)
        self._noted(f"{self._plan.cell(key).label}: {name} is run again: {why}")
        self.due.owe(key, name)

    def waits(self, keys: Sequence[str], block: int) -> bool:
        """Tell whether a trial of a block is still due."""
        return any(
            self.due.needs(key, block) is not None and self.due.given_up(key) is None
            for key in keys
        )


def enough(paths: RunPaths, plan: Plan, done: int) -> Decision | None:
    """Decide after ``done`` blocks; None where there is nothing to decide.

    Between looks only the budget can end a study, so that the trials are read at looks alone.
    """
    measure = plan.measure
    is_look = done in measure.looks
    if not measure.is_repeated or measure.added or done < measure.trials:
        return None
    if not is_look and measure.budget_s is None:
        return None
    from harness.analysis import stopping
    from harness.analysis.analyse import estimate_cells
    from harness.analysis.blocks import answered
    from harness.store.dataset import Dataset

    dataset = Dataset([paths.root], origins=_ORIGINS)
    (run,) = dataset.runs
    cells = estimate_cells(dataset)[run.info.name]
    judge = answered.judge if stopping.is_until_answered(run) else stopping.judge
    return judge(run, dataset.trials, cells, done)
