"""Say what changed from one run to another, in a question, a sentence and cards."""

from __future__ import annotations

from collections import Counter
from math import log

from harness.analysis import numbers
from harness.analysis.between_runs.run_comparison import Versus
from harness.sections.changes import besides
from harness.units import counted
from reports.text.cards import Card

_CLEAR = ("slower", "faster")
_ANSWERS = (*_CLEAR, "same", "cannot tell")
_NAMED = 2


def question(told: Versus) -> str:
    """Ask what the page answers."""
    return f"What changed from {told.before.name} to {told.after.name}?"


def sentence(told: Versus) -> str:
    """Say what changed and by how much at most, or that nothing did, or that none can tell."""
    counts = Counter(pair.change.answer for pair in told.pairs)
    total, one = len(told.pairs), len(told.pairs) == 1
    before, after = told.before.name, told.after.name
    if not told.pairs:
        return f"{after} and {before} have no cell in common that can be compared."
    clear = [p for p in told.pairs if p.change.answer in _CLEAR and p.change.ratio]
    if not clear:
        return _unchanged(counts["same"], total, before, after)
    most = max(clear, key=lambda p: abs((p.change.ratio or 1) - 1))
    inside = most.interval
    said = f"{numbers.ratio(most.change.ratio, inside)} ×"
    said += f" (interval {numbers.ratio_span(inside, most.change.ratio)})"
    if one:
        return f"{after} is {most.change.answer} than {before}: {said} in {most.label}."
    leading = sorted(_CLEAR, key=lambda way: way != most.change.answer)
    ways = [f"{way} in {counts[way]}" for way in leading if counts[way]]
    first = ways[0].replace(" in ", f" than {before} in ", 1) + f" of {total} cells"
    found = " and ".join((first, *ways[1:]))
    return f"{after} is {found}; the largest change is {said} in {most.label}."


def _unchanged(same: int, total: int, before: str, after: str) -> str:
    """Say that no cell is clearly faster or slower, and of how many that is known."""
    cells = "this 1 cell" if total == 1 else f"{'all' if same else 'any of'} these {total} cells"
    if same == total:
        return f"Nothing changed: {after} is as fast as {before} in {cells}."
    if not same:
        return f"These two runs cannot tell whether {cells} changed."
    return (
        f"No cell is clearly faster or slower: {after} is as fast as {before} in {same} of"
        f" {total} cells, and these two runs cannot tell of the others."
    )


def cards(told: Versus) -> tuple[Card, ...]:
    """Say first how many cells changed, which of them most, and what differs besides."""
    return _counted(told), *_most(told), _besides(told)


def _counted(told: Versus) -> Card:
    counts = Counter(pair.change.answer for pair in told.pairs)
    found = [f"{counts[one]} {one}" for one in _ANSWERS if counts[one]]
    title = f"Of {counted(len(told.pairs), 'cell')} in both runs"
    left_out = len(told.not_compared)
    others = f"{counted(left_out, 'cell')} {'is' if left_out == 1 else 'are'} not compared"
    each = [*found[1:], *([others] if left_out else [])]
    return Card(title, found[0] if found else numbers.UNKNOWN, "; ".join(each))


def _most(told: Versus) -> tuple[Card, ...]:
    """Name the largest change that is clear, or where none is the largest difference."""
    known = [pair for pair in told.pairs if pair.change.ratio]
    if not known:
        return ()
    clear = [pair for pair in known if pair.change.answer in _CLEAR]
    most = max(clear or known, key=lambda pair: abs(log(pair.change.ratio or 1)))
    inside = numbers.ratio_bracket(most.interval, most.change.ratio)
    said = f"{numbers.ratio(most.change.ratio, most.interval)} ×"
    title = "Largest change" if clear else "Largest difference seen"
    return (Card(title, said, " ".join((most.label, *([inside] if most.interval else [])))),)


def _besides(told: Versus) -> Card:
    title = "What differs besides"
    apart = besides(told)
    if not apart:
        return Card(title, "Nothing recorded", "in platform, environment or protocol")
    first = [f"{what}: {old} → {new}" for what, old, new in apart[:_NAMED]]
    more = len(apart) - _NAMED
    each = [*first, *([f"{more} more below"] if more > 0 else [])]
    return Card(title, counted(len(apart), "thing"), "; ".join(each))
