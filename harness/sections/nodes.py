"""The section of a screen: which nodes differ from the others, as a map of nodes and measures."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.evidence import Evidence
from harness.analysis.nodes.failures import in_words
from harness.analysis.nodes.fleet import Fleet, NodeMeasure, fleet
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Brief, Chart, Note, Sheet, Square, Squares
from harness.sections.contract.section import Section
from harness.units import listed

_HOW = (
    "Each square says by how many percent a node was slower than the median node in one measure: "
    "the median over blocks, the darker the slower; below zero it was faster. A node is named "
    "only if it is the odd one in every block and lies outside of what these nodes differ by "
    "anyway; a dark square alone names nobody."
)
_MEASURES = (
    Column("node", "node", "name"),
    Column("measure", "measure", "name"),
    Column("slower", "slower than the median node, %", "number"),
    Column("least", "at least", "number"),
    Column("most", "at most", "number"),
    Column("p", "p", "number"),
    Column("named", "named", "flag"),
    Column("sensors", "what was read otherwise there", "long"),
)
_TOGETHER = (
    Column("measure", "measure", "name"),
    Column("nodes", "nodes", "count"),
    Column("rate", "rate", "number"),
    Column("low", "from", "number"),
    Column("high", "to", "number"),
    Column("unit", "unit", "name"),
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    found = fleet(results, evidence.losses or ())
    said = (
        *_named(found),
        *in_words(found.failures),
        *(one for one in (found.fingerprint, found.doubt) if one),
    )
    yield Note(" ".join(said))
    rows = tuple(_row(one) for one in found.rows)
    table = Table("nodes", "Nodes against the median node", _MEASURES, rows)
    yield Chart(_map(found), table, note=_HOW) if rows else Sheet(table)
    together = tuple(
        (one.measure, one.nodes, one.rate, one.low, one.high, one.unit) for one in found.together
    )
    yield Sheet(Table("nodes-together", "All nodes together", _TOGETHER, together))
    yield Brief("Which nodes differ:", said)


def _named(found: Fleet) -> Iterator[str]:
    wrong = [one.node for one in found.mismatches]
    if wrong:
        yield f"Losses differ on {listed(wrong)}: silent corruption, or another processor."
    for one in (row for row in found.rows if row.is_named and row.ratio < 1):
        yield f"{one.node} is {_slower(one)} slower in {one.measure}, p {one.p:.3g}."
    if found.all_alike:
        yield found.all_alike


def _map(found: Fleet) -> Squares:
    there = {(one.node, one.measure): one for one in found.rows}
    lines = tuple(
        tuple(_square(there.get((node, measure))) for measure in found.measures)
        for node in found.nodes
    )
    return Squares(found.nodes, found.measures, lines)


def _square(one: NodeMeasure | None) -> Square | None:
    if one is None:
        return None
    ends = f"{_percent(one.high):.3g} to {_percent(one.low):.3g} %"
    named = ", named" if one.is_named else ""
    words = f"{one.node}, {one.measure}: {_slower(one)} slower than the median node ({ends})"
    return Square(round(_percent(one.ratio), 1), f"{words}, p {one.p:.3g}{named}")


def _row(one: NodeMeasure) -> tuple[object, ...]:
    percents = (_percent(one.ratio), _percent(one.high), _percent(one.low))
    return (one.node, one.measure, *percents, one.p, one.is_named, "; ".join(one.sensors))


def _percent(ratio: float) -> float:
    return 100 * (1 - ratio)


def _slower(one: NodeMeasure) -> str:
    return f"{_percent(one.ratio):.3g} %"


SECTION = Section("Which nodes differ?", 30, _blocks, contents="Nodes", needs=frozenset({"losses"}))
