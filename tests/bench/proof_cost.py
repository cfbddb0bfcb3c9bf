"""Measure what the proof of what was timed costs a trial, and that it changes nothing timed.

    python -m tests.bench.proof_cost [FRAMEWORK/WORKLOAD/BATCH …] [--pairs 6] [--until "5 s"]

The trials of one session take turns, proved and not, in the order ABBA. Those without a proof are
given none of its paths: nothing is loaded, given or examined in them, as in an adapter without the
doors. Their code, payload and steps are the same. Of each pair the ratio of the medians of the
timed steps is taken, proved over plain; the interval inverts the test of all sign flips
(``harness/stats/compare.py``). Trials of so many steps have CPU seconds that can be compared on a
busy machine too.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from unittest import mock

from harness.analysis.read import read_results
from harness.gate.proof.proofs import Asked, Proofs
from harness.plan.cell import Cell
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.run import worklist
from harness.run.progress import Progress
from harness.run.session import start
from harness.stats.compare import compare
from harness.store.layout import TrialName, TrialPaths
from harness.store.outcome import Outcome
from harness.study.study import load_study

PAIRS = 6
CELLS = (
    *(f"{framework}/tinycnn/16" for framework in ("torch", "jax", "tensorflow")),
    *(f"{framework}/alexnet/4" for framework in ("torch", "jax", "tensorflow")),
)
STUDY = """title = "What a proof costs"
[matrix]
workload = "{workload}"
framework = "{framework}"
batch = {batch}
[measure]
trials = {trials}
warmup = "3 steps"
until = "{until}"
tolerate = ["contended", "throttled", "stalled"]
"""


class EverySecond(Proofs):
    """Proves every trial but those whose turn it is to have no proof."""

    judged_s: Sequence[float] = ()

    def asked(self, cell: Cell, block: int) -> Asked | None:
        """Say what a trial is given, as in a cell's first trial: examined, whatever it takes."""
        self._shares.clear()
        self._examined.clear()
        return super().asked(cell, block) if is_proved(block) else None

    def judge(self, cell: Cell, asked: Asked, trial: TrialPaths, trial_s: float) -> str:
        """Judge as ever, and note how long that takes on the host."""
        began = time.monotonic()
        words = super().judge(cell, asked, trial, trial_s)
        EverySecond.judged_s = [*EverySecond.judged_s, time.monotonic() - began]
        return words


def is_proved(block: int) -> bool:
    """Whether a block's trial is: 1 and 4 of each four are."""
    return block % 4 in (0, 1)


@dataclass
class Lengths:
    """An observer that notes how long trials take, and how much memory."""

    seconds: dict[int, float] = field(default_factory=dict)
    peak_bytes: dict[int, int] = field(default_factory=dict)
    cpu_s: dict[int, float] = field(default_factory=dict)
    words: str = ""

    def progressed(self, progress: Progress) -> None:
        """Draw nothing."""

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        """Note what the trial took; one that failed says why."""
        name = TrialName.parse(outcome.trial)
        if name is None:
            return  # the probe
        assert outcome.is_ok, outcome.reason
        self.seconds[name.block] = outcome.seconds
        self.peak_bytes[name.block] = sum(one.max_rss_bytes or 0 for one in outcome.ranks)
        self.cpu_s[name.block] = sum(one.cpu_s or 0.0 for one in outcome.ranks)
        self.words = outcome.proof or self.words

    def doing(self, text: str) -> None:
        """Draw nothing."""

    def noted(self, text: str) -> None:
        """Say what is computed once."""
        print(f"    {text}", flush=True)


def measure(framework: str, workload: str, batch: str, *, pairs: int, until: str) -> None:
    """Run one cell's trials by turns, and say what the proof costs them."""
    told, EverySecond.judged_s = Lengths(), ()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "study.toml")
        asked = {"framework": framework, "workload": workload, "batch": batch, "until": until}
        file.write_text(STUDY.format(trials=2 * pairs, **asked), encoding="utf-8")
        study = load_study(file)
        plan = make_plan(study, load_platform())
        run = Path(folder, "run")
        with mock.patch.object(worklist, "Proofs", EverySecond):
            start(plan, root=run, study_text=study.text, observer=told)
        (cell,) = read_results([run]).cells
    steps = {one.block: one.p50_s for one in cell.trials if one.p50_s}
    say(told, steps, f"{framework} {workload}, batch {batch}")


def say(told: Lengths, steps: dict[int, float], what: str) -> None:
    """Print both lengths, and the ratio of the timed steps."""
    proved, plain = ([b for b in told.seconds if is_proved(b) is way] for way in (True, False))
    for name, blocks in (("proved", proved), ("plain", plain)):
        seconds = [told.seconds[block] for block in blocks]
        memory = median(told.peak_bytes[block] for block in blocks)
        print(
            f"{what}: {name} {median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f}), "
            f"{median(told.cpu_s[block] for block in blocks):.1f} CPU-s, {memory / 2**20:.0f} MiB, "
            f"{len(blocks)} trials"
        )
    print(
        f"    {_more(told.cpu_s)} CPU-s more; {_more(told.seconds)} s longer; the host judges "
        f"for {median(EverySecond.judged_s):.1f} s; {told.words}"
    )
    logs = [math.log(steps[one] / steps[other]) for one, other in pairs_of(steps)]
    found = compare({"proved": logs})["proved"]
    apart = ", ".join(f"{math.exp(one):.3f}" for one in logs)
    interval = "–" if found.low is None else f"{found.low:.3f} to {found.high:.3f}"
    print(f"    timed steps, proved over plain: {found.ratio:.3f}, 95 % {interval} ({apart})")


def _more(known: dict[int, float]) -> str:
    more = _differences(known)
    return f"{median(more):.1f} ({min(more):.1f} to {max(more):.1f})"


def _differences(known: dict[int, float]) -> list[float]:
    return [known[one] - known[other] for one, other in pairs_of(known)]


def pairs_of(known: dict[int, float]) -> list[tuple[int, int]]:
    """Give neighbours as the proved and the plain one, where both are known."""
    first = [(one, one + 1) if is_proved(one) else (one + 1, one) for one in sorted(known)[::2]]
    return [pair for pair in first if set(pair) <= set(known)]


def main() -> None:
    """Measure the cells that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cells", nargs="*", default=CELLS)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--until", default="5 s")
    typed = parser.parse_args()
    for cell in typed.cells:
        measure(*cell.split("/"), pairs=typed.pairs, until=typed.until)


if __name__ == "__main__":
    main()
