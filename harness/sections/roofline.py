"""The section of the machine's ceilings: how far below them each cell is."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.context.roofline import roof
from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Chart, Gist, Note, Roof
from harness.sections.contract.section import Section
from harness.units import listed, scaled

_COLUMNS = (
    Column("name", "cell or ceiling", "name"),
    Column("intensity", "operations per byte", "number"),
    Column("flops", "operations per second of a device", "number"),
    Column("bytes_per_s", "bytes per second", "number"),
    Column("how", "known from"),
)

_HOW = (
    "In brackets: the part that a cell reaches of the roof above it, which memory limits on the "
    "slope and computing on the level. Operations per byte are a model: each tensor moves through "
    "memory as if no cache kept it."
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    ceilings, points = roof(results, evidence.ceilings or ())
    if not points:
        return
    cells = tuple((one.name, one.intensity, one.flops, None, "this study") for one in points)
    roofs = tuple((one.name, None, one.flops, one.bytes_per_s, one.how) for one in ceilings)
    table = Table("roofline", "Roofline", _COLUMNS, (*cells, *roofs))
    highest = max(points, key=lambda one: one.flops)
    yield Gist(f"highest: {scaled(highest.flops, 'FLOP/s')}, {highest.name}")
    yield Note(_HOW)
    yield Chart(Roof(ceilings, points), table)
    if above := [one.name for one in points if one.share > 1]:
        yield Note(f"Above the roof, so it is too low, or caches kept bytes: {listed(above)}.")


SECTION = Section("How close to the machine's ceilings", 800, _blocks, contents="Ceilings")
