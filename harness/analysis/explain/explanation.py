"""Account for the difference between two cells' steps, each part with its interval.

The step of each cell was timed untraced, in paired blocks: its geometric mean over these is what
is divided, so that the parts account for the very ratio that is told. Its shares are those of the
traced steps. A part's difference is its share of one step less its share of the other. Over the
blocks it varies as the steps do; to that comes what the shares vary from traced step to traced
step. The parts, with what carries no mark (unexplained), add up to the difference by construction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean, geometric_mean, variance

from harness.analysis.explain.fused_layers import Members, joined
from harness.analysis.explain.kinds import Kind, kinds
from harness.analysis.explain.pair import Block, answer_of, inverse, inverted, paired_steps
from harness.analysis.explain.step_shares import (
    GAPS,
    UNEXPLAINED,
    Key,
    Share,
    StepShares,
    as_traced,
    timed_shares,
    together,
)
from harness.analysis.floors.kept_floors import MachineFloors
from harness.errors import BakeoffError
from harness.stats.answers import ALPHA, FEWEST_BLOCKS
from harness.stats.student import critical_t
from harness.store.record_readers.attribution import NOT_MADE, Attribution, Operation
from harness.store.records import EQUIVALENT
from harness.study.framework import framework_info
from harness.verdicts.results import CellResult, Interval

LISTED = 12
"""Parts that are listed by themselves; the intervals of these hold together."""
SMALLER: Key = ("", "smaller parts")
OF_RANKS = ": what ranks exchange in its strategy is not told from what they compute"
_SCATTER = 0.07
"""So far apart are processes of one framework over one layer: a floor by less is not beaten."""


@dataclass(frozen=True)
class Term:
    """One part of the difference, in seconds; above zero the first cell takes longer."""

    key: Key
    first_s: float
    second_s: float
    interval: Interval | None
    """Of the difference."""
    first_operations: tuple[Operation, ...] = ()
    second_operations: tuple[Operation, ...] = ()
    parts: int = 1
    kinds: tuple[Kind, ...] = ()
    """Of several parts: what the first cell runs most in them, what adds most first."""
    first_floor_s: float | None = None
    """The least that the layer and pass needed alone on this machine; None: not kept, or beaten."""
    second_floor_s: float | None = None
    is_beaten: bool = False
    """Whether a floor was, by a step of either: it says nothing then."""

    @property
    def difference_s(self) -> float:
        """Give what the part adds to the first cell's step."""
        return self.first_s - self.second_s

    @property
    def is_told(self) -> bool:
        """Tell whether it can be told from noise."""
        found = self.interval
        return found is not None and (found.low > 0 or found.high < 0)


@dataclass(frozen=True)
class Explanation:
    """Why the first cell's step takes longer than the second's, or why nothing says that."""

    first: CellResult
    second: CellResult
    refusal: str = ""
    """Why nothing is explained; then nothing else is known."""
    is_refused: bool = False
    """Whether a difference, if there is one, stays unexplained."""
    ratio: float = 1.0
    """The first cell's step over the second's."""
    ratio_interval: Interval | None = None
    first_step_s: float = 0.0
    second_step_s: float = 0.0
    blocks: int = 0
    terms: tuple[Term, ...] = ()
    """Largest first; what is unexplained comes last."""
    traced: tuple[str, ...] = ()
    """Of each cell, by what and how much slower its steps were while they were traced."""

    @property
    def difference_s(self) -> float:
        """Give the whole difference."""
        return self.first_step_s - self.second_step_s

    @property
    def unexplained(self) -> Term | None:
        """Give what carries no mark."""
        return next((one for one in self.terms if one.key == UNEXPLAINED), None)

    @property
    def causes(self) -> tuple[Term, ...]:
        """Give the parts that can be told from noise and add to the difference."""
        sign = 1 if self.difference_s > 0 else -1
        named = [one for one in self.terms if one.key not in (UNEXPLAINED, SMALLER)]
        return tuple(one for one in named if one.is_told and sign * one.difference_s > 0)


def explain(
    one: CellResult,
    other: CellResult,
    attributions: Mapping[str, Attribution | str],
    *,
    seed: int,
    floors: MachineFloors | None = None,
) -> Explanation:
    """Explain the slower of two cells of one run against the faster one."""
    refusal = _refusal(one, other)
    if refusal:
        return Explanation(one, other, refusal, is_refused=True)
    told = answer_of(one, other, seed=seed)
    if told.answer not in ("faster", "slower"):
        words = "they are equally fast"
        if told.answer != "same":
            words = f"their rates cannot be told apart: {told.why}"
        return Explanation(one, other, f"nothing to explain: {words}")
    first, second = (one, other) if told.answer == "slower" else (other, one)
    shares = []
    for cell in (first, second):
        found = timed_shares(cell, attributions.get(cell.key, NOT_MADE))
        if isinstance(found, str):
            of_ranks = OF_RANKS if found == NOT_MADE and _is_of_ranks(cell) else ""
            words = f"{cell.label}: {found}{of_ranks}"
            return Explanation(first, second, words, is_refused=True)
        shares.append(found)
    steps = paired_steps(first, second)
    first_s, second_s = (
        geometric_mean(one.step_s for one in column) for column in zip(*steps, strict=True)
    )
    mine, theirs, members = joined(first, (first_s, second_s), *shares)
    terms = _terms((first_s, second_s), mine, theirs, steps)
    if floors is not None:
        terms = tuple(_beside_floors(one, first, second, floors, members) for one in terms)
    slower = told if first is one else inverse(told)
    return Explanation(
        first,
        second,
        ratio=1 / (slower.ratio or 1.0),
        ratio_interval=inverted(slower.interval),
        first_step_s=first_s,
        second_step_s=second_s,
        blocks=len(steps),
        terms=terms,
        traced=tuple(
            f"{cell.label}: {as_traced(cell, one)}"
            for cell, one in zip((first, second), shares, strict=True)
        ),
    )


def _is_of_ranks(cell: CellResult) -> bool:
    """Tell whether a cell has several ranks of a strategy whose steps nothing divides."""
    try:
        told = framework_info(cell.framework).attributes_ranks
    except BakeoffError:  # of another installation
        return False
    return cell.scale.devices > 1 and cell.strategy not in told


def _refusal(one: CellResult, other: CellResult) -> str:
    if one.key == other.key:
        return "it is the same cell twice"
    if one.task != other.task:
        return f"they do different work: {one.task}, {other.task}"
    if one.work_per_step != other.work_per_step:
        work = f"{one.work_per_step:,} and {other.work_per_step:,} {one.unit}"
        return (
            f"their steps differ in size: {work} a step; `show --cell` takes each apart by itself"
        )
    for cell in (one, other):
        if cell.factors.get("communicate") is False and not cell.refusal:
            return (
                f"{cell.label}: its ranks keep their gradients, so it trains something else; what "
                "exchanging costs a step is in `bakeoff export RUN --table communication`"
            )
        if not cell.is_comparable or cell.gate.state != EQUIVALENT:
            why = cell.refusal or f"the gate says {cell.gate.state}"
            return f"nothing shows that they compute the same: {cell.label}: {why}"
        if cell.rate is None:
            return f"{cell.label} has no rate"
    return ""


def _terms(
    whole_s: tuple[float, float],
    mine: StepShares,
    theirs: StepShares,
    steps: Sequence[tuple[Block, Block]],
) -> tuple[Term, ...]:
    nothing = Share()
    keys = [*dict.fromkeys((*mine.parts, *theirs.parts, UNEXPLAINED))]
    whole = [
        _term(whole_s, key, mine.parts.get(key, nothing), theirs.parts.get(key, nothing))
        for key in keys
    ]
    ordered = sorted(whole, key=lambda one: -abs(one.difference_s))
    listed = [one for one in ordered if one.key != UNEXPLAINED][:LISTED]
    smaller = [one for one in ordered if one.key != UNEXPLAINED][LISTED:]
    listed += [one for one in ordered if one.key == UNEXPLAINED]
    first, second = dict(mine.parts), dict(theirs.parts)
    if smaller:
        for parts in (first, second):
            parts[SMALLER] = together([parts.get(one.key, nothing) for one in smaller])
        both_s = first[SMALLER].mean * whole_s[0], second[SMALLER].mean * whole_s[1]
        ran = kinds(
            (one.difference_s, one.first_operations) for one in smaller if one.key[1] != GAPS
        )
        listed.insert(-1, Term(SMALLER, *both_s, None, parts=len(smaller), kinds=ran))
    level = ALPHA / len(listed)
    return tuple(
        replace(
            one,
            interval=_interval(
                one, first.get(one.key, nothing), second.get(one.key, nothing), steps, level
            ),
        )
        for one in listed
    )


def _term(whole_s: tuple[float, float], key: Key, mine: Share, theirs: Share) -> Term:
    return Term(
        key,
        mine.mean * whole_s[0],
        theirs.mean * whole_s[1],
        None,
        mine.operations,
        theirs.operations,
    )


def _beside_floors(
    term: Term, first: CellResult, second: CellResult, floors: MachineFloors, members: Members
) -> Term:
    """Put the floors beside what both took. One that was clearly beaten in either step is none."""
    took = {first.key: term.first_s, second.key: term.second_s}
    parts = members.get(term.key, (term.key,))
    found = {
        cell.key: max(
            (one.seconds for key in parts if (one := floors.of_part(cell, *key))), default=0
        )
        for cell in (first, second)
    }
    beaten = [one for key, one in found.items() if 0 < took[key] < one * (1 - _SCATTER)]
    kept = {key: one for key, one in found.items() if one and one not in beaten}
    return replace(
        term,
        first_floor_s=kept.get(first.key),
        second_floor_s=kept.get(second.key),
        is_beaten=bool(beaten),
    )


def _interval(
    term: Term, mine: Share, theirs: Share, steps: Sequence[tuple[Block, Block]], alpha: float
) -> Interval | None:
    """Give where a part's difference lies: Student's t over the blocks, and the shares' errors."""
    if len(steps) < FEWEST_BLOCKS:
        return None
    usual = [fmean(1 - one.waited for one in column) for column in zip(*steps, strict=True)]
    each = [
        one.of(term.key, mine, usual[0]) - other.of(term.key, theirs, usual[1])
        for one, other in steps
    ]
    first_s, second_s = (fmean(one.step_s for one in column) for column in zip(*steps, strict=True))
    error = sqrt(
        variance(each) / len(each) + (mine.error * first_s) ** 2 + (theirs.error * second_s) ** 2
    )
    reach = critical_t(alpha, len(each) - 1) * error
    middle = term.difference_s
    meaning = f"Student's t over {len(each)} paired blocks, with the shares' own error"
    return Interval(middle - reach, middle + reach, 1 - alpha, meaning)
