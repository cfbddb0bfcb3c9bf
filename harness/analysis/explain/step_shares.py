"""The shares of a cell's step, by what they are compared by, with what they may miss.

A trace is disturbed by whatever else runs: only the quicker half of the traced steps counts, and
what tracing cost is told by the quicker half of the untraced ones beside them. Where ranks exchange
anything every step counts, as they wait for each other in each for another time. Means over the
same steps add up to one; medians would not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean, median, stdev

from harness.analysis import numbers
from harness.store.record_readers.attribution import Attribution, Operation
from harness.verdicts.results import CellResult

Key = tuple[str, str]
"""A layer's path, empty where it is of the whole step, and the phase."""

UNEXPLAINED: Key = ("", "unexplained")
INPUT: Key = ("", "input")
EXCHANGE, GAPS = "exchange", "host gaps"
DISTURBED = 0.25
"""Traced steps that differ by more from untraced ones, or those from the timed, explain nothing."""
_WHOLE = ("update", "loss", "layout copy", "plain copy", GAPS, "input", EXCHANGE)
"""Phases that are compared as a whole: their operations are not divided alike everywhere."""


@dataclass(frozen=True)
class Share:
    """One part of a step."""

    each: tuple[float, ...] = ()
    """Of each traced step that counts."""
    operations: tuple[Operation, ...] = ()

    @property
    def mean(self) -> float:
        """Give the part over all of them."""
        return fmean(self.each) if self.each else 0.0

    @property
    def error(self) -> float:
        """Give the standard error of that."""
        return stdev(self.each) / sqrt(len(self.each)) if len(self.each) > 1 else 0.0


def together(shares: Sequence[Share]) -> Share:
    """Join some parts of one step."""
    there = [one for one in shares if one.each]
    return Share(
        tuple(map(sum, zip(*(one.each for one in there), strict=True))),
        _of_all([(one.mean, one.operations) for one in there]),
    )


def _of_all(parts: Sequence[tuple[float, Sequence[Operation]]]) -> tuple[Operation, ...]:
    """Give the operations of some parts, each with its share of all of them."""
    whole = sum(mean for mean, _ in parts) or 1.0
    return tuple(
        replace(one, share=one.share * mean / whole) for mean, each in parts for one in each
    )


@dataclass(frozen=True)
class StepShares:
    """All parts of a cell's step."""

    traced_by: str
    traced_step_s: float
    """The median traced step; where ranks exchange the mean, as trials have it."""
    slowed: float | None
    """By how much tracing made steps longer, the quicker halves of both; None as below."""
    untraced_step_s: float | None
    """The same of the steps beside them that nothing traced; None of runs that made none."""
    steps: int
    """How many of them count."""
    parts: Mapping[Key, Share]


def step_s(cell: CellResult) -> float:
    """Give the seconds of a cell's step, as its trials timed it."""
    assert cell.rate is not None
    return cell.work_per_step / cell.rate.value


def waited(cell: CellResult) -> float:
    """Give the share of its steps in which a cell waited for input."""
    shares = waited_by_block(cell).values()
    return fmean(shares) if shares else 0.0


def waited_by_block(cell: CellResult) -> dict[int, float]:
    """Give the same of each block that tells it."""
    return {
        trial.block: trial.input.wait_share
        for trial in cell.trials
        if trial.counted and trial.input is not None and trial.input.wait_share is not None
    }


def timed_shares(cell: CellResult, of: Attribution | str) -> StepShares | str:
    """Divide the step of a cell as it was timed, waiting for input apart; or say why not."""
    if isinstance(of, str):
        return of
    shares = step_shares(of)
    why = _disturbance(cell, shares)
    if why:
        bound = f"more than {numbers.share(DISTURBED)}; `bakeoff resume` traces again"
        return f"disturbed: {why}, too far off to explain anything ({bound})"
    rest = 1 - waited(cell)
    parts = {
        key: replace(part, each=tuple(one * rest for one in part.each))
        for key, part in shares.parts.items()
    }
    if rest < 1:
        parts[INPUT] = Share((1 - rest,) * shares.steps)
    return replace(shares, parts=parts)


def is_disturbed(cell: CellResult, of: Attribution) -> bool:
    """Tell whether what was traced explains nothing, since it ran unlike what was timed."""
    return bool(_disturbance(cell, step_shares(of)))


def _disturbance(cell: CellResult, shares: StepShares) -> str:
    """Say how far a cell's traced steps were from its timed ones; "" where that is little."""
    for slowed, when, otherwise in _slowed(cell, shares):
        if abs(slowed) > DISTURBED:
            return f"its steps took {_by_how_much(slowed, when, otherwise)}"
    return ""


def _by_how_much(slowed: float, when: str = "", otherwise: str = "") -> str:
    """Say by how much something took longer or shorter; from twice as long on, how many times."""
    if slowed >= 1:
        words = f"{numbers.number(1 + slowed)} times as long", when, otherwise and f"as {otherwise}"
    else:
        way = "longer" if slowed > 0 else "shorter"
        words = f"{numbers.share(abs(slowed))} {way}", when, otherwise and f"than {otherwise}"
    return " ".join(word for word in words if word)


def as_traced(cell: CellResult, shares: StepShares) -> str:
    """Say what traced how many steps, and how much slower they were than those that were timed."""
    slowed, *_ = next(_slowed(cell, shares))
    beside = (
        "those that were timed" if shares.untraced_step_s is None else "untraced ones beside them"
    )
    return (
        f"{shares.steps} steps traced by {shares.traced_by}, "
        f"{_by_how_much(slowed, otherwise=beside)}"
    )


def _slowed(cell: CellResult, shares: StepShares) -> Iterator[tuple[float, str, str]]:
    """Say by how much steps were longer while they were traced, and in the job that traced some.

    With when they were, and what they are held against where that is not said by it.
    """
    timed_s = step_s(cell) * (1 - waited(cell))
    beside_s = shares.untraced_step_s
    if shares.slowed is None or beside_s is None:
        yield shares.traced_step_s / timed_s - 1, "while they were traced", ""
    else:
        yield shares.slowed, "while they were traced", ""
        yield beside_s / timed_s - 1, "in the job that traced some of them", "in the trials"


def step_shares(of: Attribution) -> StepShares:
    """Join the parts that are compared as a whole, over the quicker half of the traced steps."""
    counting = weights(of)
    members: dict[Key, list[Share]] = defaultdict(list)
    for part in of.parts:
        each = tuple(weight * part.shares[at] for at, weight in counting.items())
        members[_key(part.site, part.phase)].append(Share(each, part.operations))
    parts = {key: together(each) for key, each in members.items()}
    middle, usual = (fmean, fmean) if _exchanges(of) else (median, _quicker)
    untraced_s = middle(of.untraced_s) if of.untraced_s else None
    slowed = usual(of.step_s) / usual(of.untraced_s) - 1 if of.untraced_s else None
    return StepShares(of.traced_by, middle(of.step_s), slowed, untraced_s, len(counting), parts)


def _quicker(steps: Sequence[float]) -> float:
    """Give the mean of the quicker half of some steps."""
    middle = median(steps)
    return fmean(one for one in steps if one <= middle)


def weights(of: Attribution) -> dict[int, float]:
    """Give the places of the traced steps that count, each with its weight, on average one.

    Where every step counts, a longer one counts for more.
    """
    if _exchanges(of):
        usual = fmean(of.step_s)
        return {at: one / usual for at, one in enumerate(of.step_s)}
    middle = median(of.step_s)
    return {at: 1.0 for at, one in enumerate(of.step_s) if one <= middle}


def _exchanges(of: Attribution) -> bool:
    return any(part.phase == EXCHANGE for part in of.parts)


def _key(site: str, phase: str) -> Key:
    if phase in _WHOLE:
        return "", phase
    return (site, phase) if site and phase != "other" else UNEXPLAINED
