"""Draw the input and checkpoint ladders: how fast the chain is, rung by rung."""

from __future__ import annotations

from harness.analysis.evidence import Evidence, Ladder
from harness.analysis.tables import Column, Table
from harness.sections.files.goodput import ALIKE
from harness.verdicts.results import Interval
from reports.charts.rungs import rungs
from reports.page.figures import Drawing

_COLUMNS = (
    Column("rung", "up to", "name"),
    Column("rate", "rate", "number"),
    Column("rate_interval", "interval", "interval"),
    Column("unit", "unit"),
    Column("trials", "n", "count"),
    Column("share", "of the rung above", "share"),
    Column("cpu_s_per_gb", "CPU-s per GB", "number"),
)


def ladder_drawings(evidence: Evidence) -> list[Drawing]:
    """Draw every ladder, inputs before checkpoints, cold apart from warm."""
    told = sorted(evidence.ladders, key=lambda ladder: ladder.kind != "input")
    return [_drawing(ladder, f"ladder-{index}") for index, ladder in enumerate(told, 1)]


def _drawing(ladder: Ladder, name: str) -> Drawing:
    title = f"{ladder.title}, {ladder.state}" if ladder.state else ladder.title
    rows: list[tuple[str, float, Interval | None, str, int, float | None, float | None]] = []
    above: float | None = None
    odd = []
    for rung in ladder.rungs:
        rate = rung.rate
        share = rate.value / above if above else None
        if share is not None and ALIKE * share > 1:
            share = None  # what it stands on was disturbed, or asked for less at a time
            odd.append(f"“{rung.name}” is faster than what it stands on: no share is given.")
        rows.append(
            (rung.name, rate.value, rate.interval, rate.unit, rate.n, share, rung.cpu_s_per_gb)
        )
        above = rate.value
    said = [f"Bottleneck: {ladder.bottleneck}."] if ladder.bottleneck else []
    said += odd
    said += [ladder.source] if ladder.source else []
    table = Table(name, title, _COLUMNS, tuple(rows))
    svg, narrow = (
        rungs(ladder.rungs, name=own, label=title, narrow=own != name)
        for own in (name, f"{name}-narrow")
    )
    return Drawing(title, " ".join(said), svg, name, table, narrow=narrow)
