"""Lay out one run against another: each cell's ratio, and what differs besides."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from harness.analysis import numbers
from harness.analysis.run_comparison import METRICS, Pair, Versus
from harness.analysis.tables import Column, Table
from harness.sections.cells import parts
from harness.verdicts.results import Interval
from reports.charts.ratios import Ratio, ratios
from reports.page.figures import Drawing

_MOST_DRAWN = 60
_CLEAR = ("slower", "faster")


@dataclass(frozen=True)
class Changes:
    """What the page says of a second run against a first."""

    question: str
    sentence: str
    notes: tuple[str, ...]
    drawing: Drawing
    differences: Table
    not_compared: Table


def _interval(pair: Pair) -> Interval | None:
    change = pair.change
    if change.low is None or change.high is None:
        return None
    meaning = f"{change.before} and {change.after} trials, relabelled; holds for all cells together"
    return Interval(change.low, change.high, change.level, meaning)


def _sentence(told: Versus) -> str:
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
    inside = _interval(most)
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
        return f"Whether {cells} changed, these two runs cannot tell."
    return (
        f"No cell is clearly faster or slower: {after} is as fast as {before} in {same} of"
        f" {total} cells, and these two runs cannot tell of the others."
    )


def _drawing(told: Versus) -> Drawing:
    columns = (
        Column("cell", "cell", "name"),
        Column("ratio", "×", "ratio"),
        Column("ratio_interval", "interval of ×", "interval"),
        Column("answer", "answer"),
        Column("before", told.before.name, "number"),
        Column("before_interval", "interval", "interval"),
        Column("before_trials", "n", "count"),
        Column("after", told.after.name, "number"),
        Column("after_interval", "interval", "interval"),
        Column("after_trials", "n", "count"),
        Column("unit", "unit"),
    )
    rows = tuple(
        (
            pair.label,
            pair.change.ratio,
            _interval(pair),
            pair.change.answer,
            *parts(pair.before.rate),
            *parts(pair.after.rate),
            pair.after.rate.unit if pair.after.rate else pair.after.unit,
        )
        for pair in told.pairs
    )
    drawn = [
        Ratio(p.label, p.change.ratio, _interval(p), p.change.answer)
        for p in told.pairs
        if p.change.ratio is not None
    ]
    title = f"{METRICS[told.metric].title} of {told.after.name} over that of {told.before.name}"
    note = f"{title[:1].upper()}{title[1:]}; right of 1 is better. Lines are intervals."
    if len(drawn) > _MOST_DRAWN:
        note += f" The first {_MOST_DRAWN} of {len(drawn)} cells are drawn; the table has all."
    shown = drawn[:_MOST_DRAWN]
    svg = ratios(shown, name="changes", label=title)
    narrow = ratios(shown, name="changes-narrow", label=title, narrow=True)
    told_as_table = Table("changes", title, columns, rows)
    return Drawing("", note, svg, "changes", told_as_table, narrow=narrow)


def _besides(told: Versus) -> tuple[tuple[str, str, str], ...]:
    """Say once of an environment that only one of the runs used that it did."""
    environments: dict[str, set[tuple[bool, bool]]] = {}
    for what, old, new in told.differences:
        if what.startswith("environment."):
            known = (old != numbers.UNKNOWN, new != numbers.UNKNOWN)
            environments.setdefault(_environment(what), set()).add(known)
    rows: dict[tuple[str, str, str], None] = {}
    for what, old, new in told.differences:
        sides = environments.get(_environment(what), set())
        if len(sides) == 1 and sides < {(True, False), (False, True)}:
            used = ["used" if known else "not used" for known in next(iter(sides))]
            rows[_environment(what), used[0], used[1]] = None
        elif old != new:  # unset and unstated print alike
            rows[what, old, new] = None
    return tuple(rows)


def _environment(what: str) -> str:
    """Cut ``environment.jax.packages.numpy`` down to ``environment.jax``; names may hold dots."""
    for part in (".packages.", ".argv", ".description", ".fingerprint", ".version"):
        if part in what:
            return what.partition(part)[0]
    return what


def changes(told: Versus) -> Changes:
    """Prepare the section, and what the first screen says of it."""
    differences = (
        Column("what", "what", "name"),
        Column("before", told.before.name, "long"),
        Column("after", told.after.name, "long"),
    )
    holes = (Column("cell", "cell", "name"), Column("why", "why", "long"))
    return Changes(
        question=f"What changed from {told.before.name} to {told.after.name}?",
        sentence=_sentence(told),
        notes=told.warnings,
        drawing=_drawing(told),
        differences=Table("changed-besides", "What differs besides", differences, _besides(told)),
        not_compared=Table("not-compared", "Not compared", holes, tuple(told.not_compared)),
    )
