"""Say an explanation in words: what a part is called, and one sentence for each cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis import numbers
from harness.analysis.explain.explanation import SMALLER, Explanation, Term
from harness.analysis.explain.hardware import hardware
from harness.analysis.explain.pair import is_of_page
from harness.analysis.explain.step_shares import UNEXPLAINED
from harness.store.record_readers.attribution import Operation
from harness.units import counted, listed
from harness.verdicts.results import Interval

_MUCH = 0.1
"""Of a difference, as much as may not go unsaid: the parts above would add up to more than all."""
_WORTH_SAYING = 0.005
"""Of a difference: less rounds to nothing, and is in the table."""
_NAMED = 2
"""Kinds of operations that are named of a part."""
_MILLISECONDS = 1e3


def part_name(term: Term) -> str:
    """Call a part: ``conv2, backward``."""
    site, phase = term.key
    if term.key == SMALLER:
        return f"{term.parts} {phase}"
    return f"{site}, {phase}" if site else phase


def operations_words(operations: Sequence[Operation]) -> str:
    """Name the operations that took longest, with their types and shapes; "" for none."""
    told = [
        " ".join(filter(None, (f"{one.times:.3g} ×", one.name, one.type, one.shapes)))
        for one in sorted(operations, key=lambda one: -one.share)[:_NAMED]
    ]
    rest = len(operations) - len(told)
    return "; ".join(told) + (f"; {counted(rest, 'more kind')}" if rest > 0 else "")


def _doings(operations: Sequence[Operation]) -> str:
    """Name what took longest without types and shapes, which a table beside the sentence has."""
    longest_first = sorted(operations, key=lambda one: -one.share)
    names = list(dict.fromkeys(one.name for one in longest_first))
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def milliseconds(term: Term) -> tuple[str, str]:
    """Give a part's difference in milliseconds with its sign, and its interval."""
    value, found = term.difference_s * _MILLISECONDS, term.interval
    if found is None:
        return _signed(numbers.number(value), value), ""
    scaled = Interval(
        found.low * _MILLISECONDS, found.high * _MILLISECONDS, found.level, found.meaning
    )
    shown, bracket = numbers.with_interval(value, scaled)
    return _signed(shown, value), bracket


def headline(of: Explanation, first: str, second: str) -> str:
    """Say how much longer the first cell's step takes; or why nothing is said."""
    if of.refusal:
        if of.is_refused:
            return f"Not explained: {of.refusal}."
        return f"{of.refusal[:1].upper()}{of.refusal[1:]}."
    steps = f"{first} takes {numbers.seconds(of.first_step_s)} a step, "
    steps += f"{second} {numbers.seconds(of.second_step_s)}"
    ratio = numbers.ratio(of.ratio, of.ratio_interval)
    span = f" ({numbers.ratio_span(of.ratio_interval, of.ratio)})" if of.ratio_interval else ""
    return f"{steps}: {ratio} × as long{span}, over {of.blocks} blocks."


def causes(of: Explanation, first: str, second: str) -> Iterator[str]:
    """Give one sentence for each cause that can be told from noise, then one of what is left.

    Before all of them comes what was asked for and did not happen: no part of a step says it. It is
    said of cells that are not explained, too, and of those whose rates cannot be told apart.
    """
    for cell, name in ((of.first, first), (of.second, second)):
        told = map(str, cell.ran.contradictions)
        yield from (f"{name} {one}." for one in told if one not in of.refusal)
    if of.refusal:
        return
    found = [one for one in of.causes if abs(one.difference_s / of.difference_s) >= _WORTH_SAYING]
    for term in found:
        yield _cause(of, term, first, second)
    if not found:
        yield "No single part of the difference can be told from noise."
    yield from _rest(of, first)
    yield from _offset(of)
    unexplained = of.unexplained
    if unexplained is not None:
        part = numbers.share(abs(unexplained.difference_s / of.difference_s))
        yield f"{part} of the difference is unexplained: it carries no layer's mark."


def _rest(of: Explanation, first: str) -> Iterator[str]:
    """Say how much lies in parts that are too small to be told one by one, where that is much.

    What runs most in them says whether they are slow for one reason.
    """
    for term in of.terms:
        if term.key == SMALLER and term.difference_s / of.difference_s >= _MUCH:
            share = numbers.share(term.difference_s / of.difference_s)
            each = [(one, one.difference_s / of.difference_s) for one in term.kinds[:_NAMED]]
            told = [
                f"{numbers.share(part)} in the {one.parts} in which {first} mostly runs "
                f"{one.operation}"
                for one, part in each
                if part >= _MUCH
            ]
            where = f"{part_name(term)}: {listed(told)}" if told else part_name(term)
            yield f"{share} of it lies in {where}."


def _offset(of: Explanation) -> Iterator[str]:
    """Say what took less and so makes up for a part of the difference, where that is much of it."""
    parts = [one for one in of.terms if one.key != UNEXPLAINED]
    less = [one for one in parts if one.difference_s * of.difference_s < 0]
    share = sum(one.difference_s for one in less) / of.difference_s
    if -share >= _MUCH:
        most = part_name(max(less, key=lambda one: abs(one.difference_s)))
        yield f"{-share * 100:.0f} % of it is made up for by what took less, most by {most}."


def beside(of: Explanation, first: str, second: str) -> Iterator[str]:
    """Say of each cell what the hardware did while it was timed, and how its steps were traced.

    And which parts have no floor because a step was quicker.
    """
    for cell, name in ((of.first, first), (of.second, second)):
        if not of.refusal and (told := hardware(cell)):
            yield f"{name}: {told}."
    yield from (f"{one}." for one in of.traced)
    if not of.refusal and not is_of_page(of.first, of.second):
        yield "These two were compared alone. Of all pairs at once less can be told: show --pairs."
    if beaten := [part_name(one) for one in of.terms if one.is_beaten]:
        them = "it" if len(beaten) == 1 else "them"
        least = f"the least that was measured for {them}: no floor stands beside {them}"
        yield f"{listed(beaten)} took less in a step than {least}."


def _cause(of: Explanation, term: Term, first: str, second: str) -> str:
    share, found = term.difference_s / of.difference_s, term.interval
    assert found is not None
    ends = sorted((found.low / of.difference_s, found.high / of.difference_s))
    low, high = (f"{one * 100:.0f}" for one in ends)
    span = f"{low}–{high}" if low != high else f"{ends[0] * 100:.1f}–{ends[1] * 100:.1f}"
    times = _beside_floor(term.first_s, term.first_floor_s, " of the quickest seen here")
    times += f" against {_beside_floor(term.second_s, term.second_floor_s, '')}"
    mine, theirs = _doings(term.first_operations), _doings(term.second_operations)
    nothing = "no operation of its own"
    doing = f"; {first}: {mine or nothing}; {second}: {theirs or nothing}"
    doing = doing if mine or theirs else ""  # as of gaps
    return f"{share * 100:.0f} % ({span}) of it is {part_name(term)}: {times}{doing}."


def floor_share(seconds: float, floor_s: float | None) -> float | None:
    """Give the least that was needed over what was; None where nothing is kept, or took nothing."""
    return None if floor_s is None or seconds <= 0 else min(1.0, floor_s / seconds)


def _beside_floor(seconds: float, floor_s: float | None, of_what: str) -> str:
    share = floor_share(seconds, floor_s)
    shown = numbers.seconds(seconds) if seconds > 0 else "nothing"
    return shown if share is None else f"{shown} (at {share * 100:.0f} %{of_what})"


def _signed(shown: str, value: float) -> str:
    return f"+{shown}" if value > 0 else shown
