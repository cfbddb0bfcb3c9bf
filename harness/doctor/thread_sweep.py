"""Find good threads, affinity and memory for this machine by trying them, briefly.

On manycore machines these are folklore: hyper-threads help or hurt, pinning doubles or does
nothing, MCDRAM first or only. A sweep runs one convolution under each setting and says by how much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.analysis.results import Results
from harness.doctor.ceilings import Session
from harness.platform.hardware import FAST
from harness.platform.platform import Platform
from harness.store.outcome import Ended
from harness.study.study import built_study

_SAME = 0.05
"""Settings within so much of the fastest count as just as fast."""


@dataclass(frozen=True)
class Setting:
    """One way to run, and what it reached."""

    threads: int
    affinity: str
    memory: str
    rate: float
    disturbed: bool
    """Whether something else ran in each of its trials."""

    @property
    def words(self) -> str:
        """Describe it for people."""
        plural = "" if self.threads == 1 else "s"
        memory = "" if self.memory == "any" else f", memory {self.memory}"
        return f"{self.threads} thread{plural}, {self.affinity}{memory}"


def thread_counts(cores: int, cpus: int) -> tuple[int, ...]:
    """Give powers of two, the cores and the CPUs."""
    powers = [1 << exponent for exponent in range(cpus.bit_length())]
    return tuple(sorted({n for n in (*powers, cores, cpus) if 1 <= n <= cpus}))


def sessions(
    platform: Platform, *, cores: int, cpus: int, framework: str, trials: int, until: str
) -> Iterator[Session]:
    """Plan a session for each affinity, then one for each memory; threads vary within."""
    counts = thread_counts(cores, cpus)
    variants = [("free", "any", counts), ("pinned", "any", counts)]
    kinds = {tier.kind for tier in platform.node.memory if tier.mode != "cache"}
    if kinds & set(FAST):
        variants += [("pinned", policy, (cores,)) for policy in ("fast-first", "interleave")]
    for affinity, memory, some in variants:
        update = {"threads": affinity, "memory": memory}
        bound = platform.binding.model_copy(update=update)
        observer = platform.observer.model_copy(update={"cores": 0})
        there = platform.model_copy(update={"binding": bound, "observer": observer})
        matrix = {"workload": "convolution", "framework": framework, "threads": list(some)}
        measure = {"trials": trials, "warmup": "3 steps", "until": until, "timeout": "5 min"}
        measure["turns"] = False  # how many threads are best is asked of trials that run alone
        study = built_study("sweep", {"title": "Sweep", "matrix": matrix, "measure": measure})
        yield Session(f"{affinity}-{memory}", study, there)


def settings(results: Results, session: Session) -> list[Setting]:
    """Read what each setting reached: the best undisturbed trial, or else the best."""
    binding = session.platform.binding
    found = []
    for cell in results.cells:
        trials = [one for one in cell.trials if one.outcome == Ended.OK and one.rate]
        quiet = [one.rate for one in trials if one.counted and one.rate]
        rates = quiet or [one.rate for one in trials if one.rate]
        if rates:
            threads = cell.factors["threads"]
            found.append(Setting(threads, binding.threads, binding.memory, max(rates), not quiet))
    return found


def recommend(found: Sequence[Setting]) -> tuple[Setting, Sequence[Setting]]:
    """Choose the simplest of the fastest: fewest threads, unpinned, any memory; and its equals."""
    best = max(one.rate for one in found)
    equals = [one for one in found if one.rate >= best * (1 - _SAME)]
    order = sorted(equals, key=lambda o: (o.threads, o.affinity == "pinned", o.memory != "any"))
    return order[0], order[1:]
