"""Measure what a trial costs on the host side: session and agent, the worker left out.

Two runs of different length are compared, so that what a session costs once drops out; CPU time
only, since a shared machine's wall time says nothing. Worker time is what wait4 said of each rank.
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


def host_cpu_s(trials: int, until: str) -> float:
    """Carry out a study; give the CPU seconds of host and agent, without those of the ranks."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cost.toml")
        file.write_text(STUDY.format(trials=trials, until=until))
        study = load_study(file)
        plan = make_plan(study, load_platform())
        before = _cpu_s()
        root = Path(folder, "run")
        result = start(plan, root=root, study_text=study.text, observer=Silent())
        assert result.ok == trials, result
        spent = _cpu_s() - before
        outcomes = [json.loads(path.read_text()) for path in root.glob("cells/*/*/outcome.json")]
        return spent - sum(rank["cpu_s"] for one in outcomes for rank in one["ranks"])


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def per_trial_ms(few: int = 20, many: int = 120) -> float:
    """Give the CPU milliseconds that each trivial trial adds."""
    return (host_cpu_s(many, "1 ms") - host_cpu_s(few, "1 ms")) / (many - few) * 1000


def share_while_running(short_s: int = 2, long_s: int = 22) -> float:
    """Give the share of a core that host and agent use while a trial runs."""
    return (host_cpu_s(1, f"{long_s} s") - host_cpu_s(1, f"{short_s} s")) / (long_s - short_s)


def main() -> None:
    """Print both figures beside what they are allowed to be."""
    host_cpu_s(2, "1 ms")  # the first session imports modules
    cost, share = per_trial_ms(), share_while_running()
    print(
        f"host side of a trivial trial   {cost:.1f} CPU-ms   {cost / PER_TRIAL_MS:.2f} × allowed\n"
        f"host side while a trial runs   {share:.2%} of a core   "
        f"{share / WHILE_RUNNING:.2f} × allowed"
    )


if __name__ == "__main__":
    main()
