"""Choose how many trials a cell has, and how long they measure, from the time that there is.

More blocks tell more than longer trials do, until starting up takes most of the time: processes
differ from each other however long they run. How much of a trial's variance that is, earlier runs
by turns on this machine tell; where none did, half of the variance of a trial of a minute is taken
to be between processes, and half to shrink with its length. Of the lengths, the one is chosen with
which the smallest difference is found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

from harness.errors import UsageError
from harness.plan.duration import estimate
from harness.plan.order import interleaved
from harness.plan.plan import Plan
from harness.plan.power.prospects import KnownNoise, Split, compared_at_most
from harness.stats.answers import FEWEST_BLOCKS
from harness.stats.power import smallest_difference
from harness.store.layout import PILOT
from harness.study.measure import TRIALS, UNTIL
from harness.units import duration
from harness.worker.job import Span

_LENGTHS_S = (120.0, 60.0, 30.0, 20.0, 10.0)
_ASSUMED = Split(stays=1e-6 / 2, shrinks=60.0 * 1e-6 / 2)
"""Only how both compare with each other decides."""
_MOST_BLOCKS = 30


def within_budget(plan: Plan, known: Callable[[Plan], KnownNoise | None] = lambda _: None) -> Plan:
    """Give the plan with what its budget is to choose; the same where that is nothing.

    ``known`` tells how much trials of a plan scattered in earlier runs.
    """
    measure = plan.measure
    if TRIALS not in measure.chosen:
        return plan
    noise = known(plan)
    split = noise.split if noise is not None and noise.split is not None else _ASSUMED
    spans = [measure.until]
    if UNTIL in measure.chosen:
        spans = [Span(seconds=one) for one in _LENGTHS_S if one < measure.timeout_s]
    designs = [(span, _seconds(plan, span)) for span in spans]
    budget_s = measure.budget_s or 0.0
    able = []
    for span, (before_s, block_s) in designs:
        blocks = min(_MOST_BLOCKS, int((budget_s - before_s) / block_s))
        if blocks >= FEWEST_BLOCKS:
            able.append((_smallest(plan, blocks, span, split), span, blocks))
    if not able:
        least_s = min(before_s + FEWEST_BLOCKS * block_s for _, (before_s, block_s) in designs)
        raise UsageError(
            f"measure.budget is {duration(budget_s)}, and {FEWEST_BLOCKS} blocks of the shortest "
            f"trials, the fewest that can tell anything, take about {duration(least_s)}. Give it "
            "that, or compare fewer cells."
        )
    _, until, blocks = min(able, key=lambda one: one[0])
    piloted = [key for key, block in plan.order if block == PILOT]
    keys = [cell.key for cell in plan.cells]
    order = interleaved(keys, trials=blocks, seed=measure.seed, piloted=piloted)
    return replace(plan, measure=replace(measure, trials=blocks, until=until), order=order)


def _seconds(plan: Plan, until: Span) -> tuple[float, float]:
    """Guess how long everything before the first block takes, and a block."""
    guess = estimate(replace(plan, measure=replace(plan.measure, until=until)))
    pilot_s = sum(guess.trial_s[key] for key, block in plan.order if block == PILOT)
    return guess.starts_s + pilot_s, sum(guess.trial_s.values())


def _smallest(plan: Plan, blocks: int, until: Span, split: Split) -> float:
    """Give what is found by so many trials of this length, relative to others of other lengths."""
    compared = max(1, compared_at_most(plan))
    return smallest_difference(compared, blocks, sqrt(split.variance(until.seconds or 1.0)))
