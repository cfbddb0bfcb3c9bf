"""The section of a comparison: the second run against the first, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.analysis import numbers
from harness.analysis.between_runs.metrics import METRICS
from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Chart, Group, Note, Ratio, Ratios, Sheet
from harness.sections.contract.columns import parts
from harness.sections.contract.section import Section

if TYPE_CHECKING:
    from harness.analysis.between_runs.run_comparison import Versus

_MOST_DRAWN = 60


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    comparison = evidence.comparison
    assert comparison is not None, "the section needs it"
    yield _chart(comparison)
    differences = (
        Column("what", "what", "name"),
        Column("before", comparison.before.name, "long"),
        Column("after", comparison.after.name, "long"),
    )
    apart = besides(comparison)
    if apart:
        title = "What differs besides between the two runs"
        table = Table("changed-besides", title, differences, apart)
        yield Group((Sheet(table),), "What differs besides")
    else:
        yield Note("Nothing that was recorded differs in platform, environment or protocol.")
    holes = (Column("cell", "cell", "name"), Column("why", "why", "long"))
    title = "Cells that were not compared, and why"
    left_out = Table("not-compared", title, holes, tuple(comparison.not_compared))
    yield Group((Sheet(left_out),), "Not compared")


def _chart(comparison: Versus) -> Chart:
    columns = (
        Column("cell", "cell", "name"),
        Column("ratio", "×", "ratio"),
        Column("ratio_interval", "interval of ×", "interval"),
        Column("answer", "answer"),
        Column("before", comparison.before.name, "number"),
        Column("before_interval", "interval", "interval"),
        Column("before_trials", "n", "count"),
        Column("after", comparison.after.name, "number"),
        Column("after_interval", "interval", "interval"),
        Column("after_trials", "n", "count"),
        Column("unit", "unit"),
    )
    rows = tuple(
        (
            pair.label,
            pair.change.ratio,
            pair.interval,
            f"{pair.change.answer}: {pair.change.why}"
            if pair.change.is_bound
            else pair.change.answer,
            *parts(pair.before.rate),
            *parts(pair.after.rate),
            pair.after.rate.unit if pair.after.rate else pair.after.unit,
        )
        for pair in comparison.pairs
    )
    ratios = tuple(
        Ratio(pair.label, pair.change.ratio, pair.interval, pair.change.answer)
        for pair in comparison.pairs
        if pair.change.ratio is not None
    )
    before, after = comparison.before.name, comparison.after.name
    title = f"{METRICS[comparison.metric].title} of {after} over that of {before}"
    note = f"{title[:1].upper()}{title[1:]}; right of 1 is better."
    if any(ratio.interval for ratio in ratios):
        note += " Lines are intervals."
    if len(ratios) > _MOST_DRAWN:
        note += f" The first {_MOST_DRAWN} of {len(ratios)} cells are drawn; the table has all."
    table = Table("changes", title, columns, rows)
    return Chart(Ratios(ratios[:_MOST_DRAWN]), table, note=note, is_open=True)


def besides(comparison: Versus) -> tuple[tuple[str, str, str], ...]:
    """Say once of an environment that only one of the runs used that it did."""
    environments: dict[str, set[tuple[bool, bool]]] = {}
    for what, old, new in comparison.differences:
        if what.startswith("environment."):
            known = (old != numbers.UNKNOWN, new != numbers.UNKNOWN)
            environments.setdefault(_environment(what), set()).add(known)
    rows: dict[tuple[str, str, str], None] = {}
    for what, old, new in comparison.differences:
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


SECTION = Section("Cell by cell", 50, _blocks, needs=frozenset({"comparison"}))
