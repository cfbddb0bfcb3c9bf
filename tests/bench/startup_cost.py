"""Measure what starting a trial of two ranks costs beyond what its framework costs.

    python -m tests.bench.startup_cost [PAIRS]

A trial of torch's ``ddp`` under the launcher ``local``, from where the host begins it to the end of
its first step on the slower rank, and a plain script with the same imports, the same meeting and
the same network, from its launch to the same point. They take turns in one session.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.run.progress import Progress
from harness.run.session import start
from harness.store.layout import RunPaths, TrialName
from harness.store.outcome import Outcome
from harness.study.framework import framework_info
from harness.study.study import load_study
from tests.adapters.interpreter import ROOT, python
from tests.bench.strategies import ranks

ALLOWED_S = 0.5
PAIRS = 12
RANKS = 2

STUDY = """title = "Start of a trial"
[matrix]
workload = "tinycnn"
framework = "torch"
strategy = "ddp"
ranks_per_node = {ranks}
batch = 8
[measure]
trials = {trials}
warmup = "1 step"
until = "1 step"
tolerate = ["contended"]
"""


class PlainRuns:
    """An observer that starts the plain script whenever a trial has ended."""

    def __init__(self) -> None:
        script = ROOT / "tests/bench/reference/torch_ddp_start.py"
        self._script = [str(python("torch")), str(script)]
        self.ours: list[float] = []
        self.plain: list[float] = []
        self._begun: tuple[str, float] = ("", 0.0)

    def progressed(self, progress: Progress) -> None:
        """Note when a trial begins: the first word of it."""
        if progress.trial != self._begun[0]:
            self._begun = progress.trial, time.monotonic()

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        """Read when the first step was done; then it is the script's turn."""
        if (name := TrialName.parse(outcome.trial)) is None:
            return  # the probe
        assert outcome.is_ok, outcome.reason
        self.ours.append(
            first_step_s(RunPaths(progress.run).trial(outcome.cell_key, name).root) - self._begun[1]
        )
        begun = time.monotonic()
        said = ranks.run(self._script, RANKS, framework_info("torch").rank_variables("ddp", {}))
        self.plain.append(max(map(float, said)) - begun)

    def doing(self, text: str) -> None:
        """Draw nothing."""

    def noted(self, text: str) -> None:
        """Draw nothing."""


def first_step_s(trial: Path) -> float:
    """Give when the slower rank's first step was done, by the clock that all processes share."""
    ends = []
    for rank in range(RANKS):
        lines = (trial / f"events.{rank}.jsonl").read_text(encoding="utf-8").splitlines()
        windows = (one for one in map(json.loads, lines) if one["event"] == "window")
        ends.append(next(windows)["end"])
    return max(ends) / 1e9


def interval(values: list[float]) -> tuple[float, float, float]:
    """Give the mean and its 95 % interval (Student's t)."""
    from scipy import stats

    middle = statistics.fmean(values)
    spread = statistics.stdev(values) / len(values) ** 0.5
    reach = stats.t.ppf(0.975, len(values) - 1) * spread
    return middle, middle - reach, middle + reach


def main() -> int:
    """Print the difference beside what it may be."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    turns = PlainRuns()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "start.toml")
        file.write_text(STUDY.format(trials=pairs, ranks=RANKS), encoding="utf-8")
        study = load_study(file)
        plan = make_plan(study, load_platform())
        start(plan, root=Path(folder, "run"), study_text=study.text, observer=turns)
    beyond = [ours - plain for ours, plain in zip(turns.ours, turns.plain, strict=True)]
    middle, low, high = interval(beyond)
    print(
        f"a trial {statistics.median(turns.ours):.2f} s, the script "
        f"{statistics.median(turns.plain):.2f} s (medians of {len(beyond)} turns)\n"
        f"beyond the script {middle:.2f} s, 95 % from {low:.2f} to {high:.2f}, "
        f"{min(beyond):.2f} to {max(beyond):.2f} (allowed {ALLOWED_S})"
    )
    return 0 if high <= ALLOWED_S else 1


if __name__ == "__main__":
    sys.exit(main())
