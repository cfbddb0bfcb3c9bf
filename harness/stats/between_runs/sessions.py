"""Tell a change between two sessions from what sessions of one machine differ by anyway.

All trials of a session share its day: the room, the kernel, what else ran. Within a session nothing
shows how much that is, so that any number of trials tells two *sessions* apart, and never that the
change between them did it. Runs that were repeated show it: the scatter of their means is what two
sessions differ by while nothing changes, with the runs (not their trials) as observations. A change
is told by Student's t on that scatter, the error shared equally by the cells; the scatter of a
session's own trials is its least. Without a repeated run nothing is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from statistics import fmean, variance

from harness.stats import answers
from harness.stats.answers import ALPHA, EQUIVALENCE
from harness.stats.between_runs.unpaired import Change
from harness.stats.student import critical_t

NOT_KNOWN = "it is not known how far two sessions of this machine differ by themselves"
_HALVINGS = 60


@dataclass(frozen=True)
class Scatter:
    """By how much the logarithms of a cell's sessions differ while nothing changes."""

    deviation: float
    freedom: int
    sessions: int
    """How many it was learnt from."""

    @property
    def reach(self) -> float:
        """Give by how much two sessions may differ for no other reason, as a share (95 %)."""
        return exp(critical_t(ALPHA, self.freedom) * sqrt(2) * self.deviation) - 1


def scatter(groups: Sequence[Sequence[float]]) -> Scatter | None:
    """Pool the scatter of session means within groups; None where no group has two."""
    several = [group for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in several)
    if not freedom:
        return None
    pooled = sum(variance(group) * (len(group) - 1) for group in several) / freedom
    return Scatter(sqrt(pooled), freedom, sum(map(len, several)))


def between(
    alone: Mapping[str, Change],
    before: Mapping[str, Sequence[float]],
    after: Mapping[str, Sequence[float]],
    known: Mapping[str, Scatter | None],
    *,
    cells: int | None = None,
    alpha: float = ALPHA,
    equivalence: float = EQUIVALENCE,
) -> dict[str, Change]:
    """Answer for every cell; ``alone`` says what two sessions say of themselves.

    ``cells`` share the error, where they are more than these.
    """
    share = alpha / max(1, cells or len(alone))
    return {
        name: _told(one, before[name], after[name], known[name], share, equivalence)
        for name, one in alone.items()
    }


def _told(
    alone: Change,
    before: Sequence[float],
    after: Sequence[float],
    known: Scatter | None,
    alpha: float,
    equivalence: float,
) -> Change:
    if known is None:
        return _unknown(alone)
    centre = fmean(after) - fmean(before)
    error = sqrt(_of_mean(before, known) + _of_mean(after, known))
    reach = critical_t(alpha, known.freedom) * error
    low, high = centre - reach, centre + reach
    p = _p_value(abs(centre) / error, known.freedom) * ALPHA / alpha if error else 0.0
    word, why = answers.answer(low, high, min(1.0, p), ALPHA, equivalence)
    ends = answers.ends(low, high)
    return replace(
        alone, low=ends[0], high=ends[1], p=min(1.0, p), answer=word, why=why, is_between=True
    )


def _unknown(alone: Change) -> Change:
    why = NOT_KNOWN
    if alone.answer in ("faster", "slower"):
        why = f"the second session was {alone.answer}, but {NOT_KNOWN}"
    return replace(alone, low=None, high=None, p=None, answer=answers.CANNOT_TELL, why=why)


def _of_mean(logs: Sequence[float], known: Scatter) -> float:
    """Give the variance of a session's mean: of sessions, and at least that of its own trials."""
    own = variance(logs) / len(logs) if len(logs) > 1 else 0.0
    return max(known.deviation**2, own)


def _p_value(t: float, freedom: int) -> float:
    """Find the error at which ``t`` is the critical value; that falls as the error grows."""
    low, high = log(1e-12), 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if critical_t(exp(middle), freedom) > t:
            low = middle
        else:
            high = middle
    return exp(high)
