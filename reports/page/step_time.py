"""Say where a step's time goes, and where nobody split it, how long its tail is."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from harness.analysis import numbers
from harness.analysis.evidence import Evidence
from harness.analysis.ranking import Ranking, rankings
from harness.analysis.tables import Column, Table
from harness.verdicts.results import CellResult, Results
from reports.charts.stacks import Stack, stacks
from reports.page.figures import Drawing

_MOST_BARS = 40
_TAIL_NOTE = (
    "The first piece ends at the median step (p50), the next at the time 95 % of steps keep, the "
    "last at that of 99 %; medians over the trials that count."
)


def step_time(results: Results, evidence: Evidence) -> list[Drawing]:
    """Draw the parts of a step where they were measured, else its percentiles."""
    if evidence.splits:
        title = "Where a step's time goes"
        split = [(one.name, one.parts_s) for one in evidence.splits]
        return [_drawing("", "", "step-time", title, split)]
    drawn = []
    for index, ranking in enumerate(rankings(results), 1):
        bars = [bar for cell in ranking.cells if (bar := _tail(ranking, cell))]
        if bars:
            name = f"step-time-{index}"
            note = _note(ranking, len(bars))
            title = f"Step time of {ranking.workload}"
            drawn.append(_drawing(ranking.workload, note, name, title, bars[:_MOST_BARS]))
    return drawn


def _tail(ranking: Ranking, cell: CellResult) -> Stack | None:
    counted = [t for t in cell.trials if t.counted and t.p50_s and t.p95_s and t.p99_s]
    if not counted:
        return None
    p50, p95, p99 = (
        median(value for t in counted if (value := getattr(t, key)))
        for key in ("p50_s", "p95_s", "p99_s")
    )
    machine = f" · {ranking.machine(cell)}" if len(ranking.runs) > 1 else ""
    parts = (("to p50", p50), ("to p95", max(0.0, p95 - p50)), ("to p99", max(0.0, p99 - p95)))
    return ranking.name(cell) + machine, parts


def _note(ranking: Ranking, bars: int) -> str:
    sizes = {t.steps_per_window for c in ranking.cells for t in c.trials if t.steps_per_window}
    said = [_TAIL_NOTE]
    if sizes - {1}:
        said.append(f"Of means over up to {max(sizes)} steps, as steps are short.")
    if bars > _MOST_BARS:
        said.append(f"The {_MOST_BARS} fastest of {bars} cells are drawn.")
    return " ".join(said)


def _drawing(heading: str, note: str, name: str, title: str, bars: Sequence[Stack]) -> Drawing:
    columns = (
        Column("cell", "cell", "name"),
        Column("part", "part"),
        Column("seconds", "time", "seconds"),
    )
    rows = tuple((cell, part, seconds) for cell, parts in bars for part, seconds in parts)
    svg, narrow = (
        stacks(bars, name=own, label=title, shown=numbers.seconds, narrow=own != name)
        for own in (name, f"{name}-narrow")
    )
    return Drawing(heading, note, svg, name, Table(name, title, columns, rows), narrow=narrow)
