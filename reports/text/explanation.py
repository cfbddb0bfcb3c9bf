"""Print why one cell is slower than another: the parts of the difference, largest first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.analysis.explain.explanation import Explanation, Term
from harness.analysis.explain.hardware import hardware
from harness.analysis.explain.words import (
    beside,
    causes,
    floor_share,
    headline,
    milliseconds,
    operations_words,
    part_name,
)
from reports.text.terminal import printable


def render(of: Explanation, first: str, second: str) -> str:
    """Print an explanation of two cells by their names."""
    return "\n".join(map(printable, _lines(of, first, second))) + "\n"


def _lines(of: Explanation, first: str, second: str) -> Iterator[str]:
    yield headline(of, first, second)
    if of.refusal:
        yield from causes(of, first, second)
        return
    rows = [(part_name(one), *milliseconds(one), _floors(one)) for one in of.terms]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for name, value, interval, floors in rows:
        told = f"  {name:{widths[0]}}  {value:>{widths[1]}} ms  {interval:{widths[2]}}  {floors}"
        yield told.rstrip()
    level = next((one.interval.level for one in of.terms if one.interval), None)
    if level is not None:
        yield "  The intervals hold together for all parts that have one."
    yield ""
    yield from causes(of, first, second)
    yield from beside(of, first, second)


def _floors(of: Term) -> str:
    """Say at what share of the least that this machine needed both cells are."""
    shares = [
        floor_share(seconds, floor_s)
        for seconds, floor_s in (
            (of.first_s, of.first_floor_s),
            (of.second_s, of.second_floor_s),
        )
    ]
    if shares == [None, None]:
        return ""
    first, second = ("–" if one is None else f"{one * 100:.0f} %" for one in shares)
    return f"at {first} and {second} of the quickest seen here"


def as_json(of: Explanation, first: str, second: str) -> dict[str, Any]:
    """Give the same as data, in seconds."""
    return {
        "first": first,
        "second": second,
        "refusal": of.refusal or None,
        "ratio": None if of.refusal else of.ratio,
        "first_step_s": None if of.refusal else of.first_step_s,
        "second_step_s": None if of.refusal else of.second_step_s,
        "blocks": of.blocks,
        "parts": [_part(one) for one in of.terms],
        "causes": list(causes(of, first, second)),
        "traced": list(of.traced),
        "hardware": {
            name: hardware(cell) or None for name, cell in ((first, of.first), (second, of.second))
        },
    }


def _part(term: Term) -> dict[str, Any]:
    found = term.interval
    return {
        "site": term.key[0],
        "phase": term.key[1],
        "first_s": term.first_s,
        "second_s": term.second_s,
        "difference_s": term.difference_s,
        "first_floor_s": term.first_floor_s,
        "second_floor_s": term.second_floor_s,
        "interval_s": None if found is None else [found.low, found.high],
        "first_operations": operations_words(term.first_operations),
        "second_operations": operations_words(term.second_operations),
        "first_mostly_runs": [one._asdict() for one in term.kinds],
    }
