"""The section of tokens: how many a second, and what of the machine that is by each convention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.analysis import numbers
from harness.analysis.evidence import Evidence
from harness.analysis.limits.model_flops import ModelFlops, model_flops
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Gist, Note, Sheet
from harness.sections.contract.section import Section

_WORDS = """Utilisation is published by at least three conventions, and figures of two of them say
nothing about each other. Full counts queries with all keys, causal with those that they may see,
and hardware what the step as timed multiplies, repeated forward passes included, but not what a
fused attention kernel computes again inside itself, which no graph tells. Shares are of the
highest rate that a kernel was measured to reach on this machine in the cell's precision; without
one there is no share. The last is of what the network's own layers reach here, each alone and by
whatever was quickest, once `bakeoff layers` has timed all that multiply at this batch. Compare
tokens per second first."""
_COLUMNS = (
    Column("cell", "cell", "name"),
    Column("tokens", "tokens per second", "number"),
    Column("tokens_interval", "interval", "interval"),
    Column("trials", "n", "count"),
    Column("full_gflops", "GFLOP/s, full", "number"),
    Column("full_share", "of the measured ceiling", "share"),
    Column("causal_gflops", "GFLOP/s, causal", "number"),
    Column("causal_share", "of the measured ceiling", "share"),
    Column("hardware_gflops", "GFLOP/s, hardware", "number"),
    Column("hardware_share", "of the measured ceiling", "share"),
    Column("ceiling_gflops", "measured ceiling, GFLOP/s", "number"),
    Column("alone_gflops", "its layers alone, GFLOP/s, full", "number"),
    Column("alone_share", "full, of its layers alone", "share"),
)


def _row(name: str, one: ModelFlops) -> tuple[Any, ...]:
    figures: list[float | None] = []
    for flops in (one.full, one.causal, one.hardware):
        figures += [flops and flops / 1e9, one.share(flops)]
    tokens = (one.tokens.value, one.tokens.interval, one.tokens.n)
    alone = (None, None) if one.alone is None else (one.alone / 1e9, one.full / one.alone)
    return (name, *tokens, *figures, one.roof and one.roof / 1e9, *alone)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    called = results.names
    rows = [
        _row(called[cell.run, cell.key], found)
        for cell in results.cells
        if not cell.refusal
        and (found := model_flops(cell, evidence.ceilings or (), evidence.floors))
    ]
    if rows:
        name, most, *_ = max(rows, key=lambda row: row[1])
        yield Gist(f"most: {numbers.number(most)} tokens per second, {name}")
        yield Note(_WORDS)
        title = "Tokens, and operations by three conventions"
        yield Sheet(Table("tokens", title, _COLUMNS, tuple(rows)))


SECTION = Section(
    "Tokens per second",
    210,
    _blocks,
    contents="Tokens",
    needs=frozenset({"ceilings", "attributions"}),
)
