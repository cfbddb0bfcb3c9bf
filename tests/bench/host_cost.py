"""Measure what a trial and a turn cost on the host side: session and agents, the worker left out.

Two runs are compared, of different length or of as long with fewer turns, so that what a session
costs once drops out; CPU time only, since a shared machine's wall time says nothing. Worker time is
what wait4 said of each rank.
"""

from __future__ import annotations

import json
import resource
import tempfile
from pathlib import Path

from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.run.progress import Progress
from harness.run.session import start
from harness.store.outcome import Outcome
from harness.study.study import load_study

PER_TRIAL_MS = 5.0
PER_TURN_MS = 1.0
WHILE_RUNNING = 0.01

STUDY = """title = "Cost of a trial"
[matrix]
workload = "nothing"
framework = "null"
[measure]
trials = {trials}
warmup = "3 steps"
until = "{until}"
"""
BY_TURNS = """title = "Cost of a turn"
[matrix]
workload = "nothing"
framework = "null"
batch = [1, 2]
[measure]
trials = 1
warmup = "3 steps"
until = "4 s"
turn = "{turn_ms} ms"
reference = {{ batch = 1 }}
tolerate = ["contended"]
"""
CELLS, UNTIL_MS = 2, 4000


class Silent:
    """An observer that looks away."""

    def progressed(self, progress: Progress) -> None:
        """Draw nothing."""

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        """Draw nothing."""

    def doing(self, text: str) -> None:
        """Draw nothing."""

    def noted(self, text: str) -> None:
        """Draw nothing."""


def host_cpu_s(text: str) -> float:
    """Carry out a study; give the CPU seconds of host and agents, without those of the ranks."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cost.toml")
        file.write_text(text)
        study = load_study(file)
        plan = make_plan(study, load_platform())
        before = _cpu_s()
        root = Path(folder, "run")
        result = start(plan, root=root, study_text=study.text, observer=Silent())
        assert result.ok == len(plan.order), result
        spent = _cpu_s() - before
        outcomes = [json.loads(path.read_text()) for path in root.glob("cells/*/*/outcome.json")]
        return spent - sum(rank["cpu_s"] for one in outcomes for rank in one["ranks"])


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def per_trial_ms(few: int = 20, many: int = 120) -> float:
    """Give the CPU milliseconds that each trivial trial adds."""
    costs = [host_cpu_s(STUDY.format(trials=count, until="1 ms")) for count in (few, many)]
    return (costs[1] - costs[0]) / (many - few) * 1000


def per_turn_ms(short_ms: int = 20, long_ms: int = 200) -> float:
    """Give the CPU milliseconds that each turn adds where a trial is as long with more of them."""
    costs = [host_cpu_s(BY_TURNS.format(turn_ms=one)) for one in (long_ms, short_ms)]
    return (costs[1] - costs[0]) / (CELLS * (UNTIL_MS // short_ms - UNTIL_MS // long_ms)) * 1000


def share_while_running(short_s: int = 2, long_s: int = 22) -> float:
    """Give the share of a core that host and agent use while a trial runs."""
    costs = [host_cpu_s(STUDY.format(trials=1, until=f"{one} s")) for one in (short_s, long_s)]
    return (costs[1] - costs[0]) / (long_s - short_s)


def main() -> None:
    """Print the figures beside what they are allowed to be."""
    host_cpu_s(STUDY.format(trials=2, until="1 ms"))  # the first session imports modules
    cost, share, turn = per_trial_ms(), share_while_running(), per_turn_ms()
    print(
        f"host side of a trivial trial   {cost:.1f} CPU-ms   {cost / PER_TRIAL_MS:.2f} × allowed\n"
        f"host side of a turn            {turn:.2f} CPU-ms   {turn / PER_TURN_MS:.2f} × allowed\n"
        f"host side while a trial runs   {share:.2%} of a core   "
        f"{share / WHILE_RUNNING:.2f} × allowed"
    )


if __name__ == "__main__":
    main()
