"""Prepare rankings and trials for the page: bars, dots, and the words beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import expm1

from harness.analysis import numbers
from harness.analysis.ranking import Ranking
from harness.sections import all_tables
from harness.sections.cells import place
from harness.verdicts.results import CellResult, Results, TrialResult
from reports.charts import bars, dots
from reports.page.links import Links

_COLOURS = 8
_REASONS = 3
"""So many rejected trials of a cell are explained beside its dots."""
_GATE_MARKS = {
    "equivalent": "≡",
    "named difference": "≈",
    "differs": "≠",
    "not checked": "?",
    "nothing to check": "",
}


@dataclass(frozen=True)
class Row:
    """One line of a ranking as the page shows it."""

    name: str
    machine: str
    first: bool
    """Whether it opens a group of machines running the same cell."""
    place: str
    """Where its raw data lie, from the page; empty where the page cannot lead there."""
    bar: str
    rate: str
    interval: str
    meaning: str
    n: int
    ratio: str
    ratio_interval: str
    answer: str
    why: str
    busy: str
    mark: str
    state: str
    greyed: bool


@dataclass(frozen=True)
class Chart:
    """A ranking with its heading."""

    workload: str
    context: str
    unit: str
    rows: tuple[Row, ...]
    has_busy: bool
    has_comparison: bool
    has_ratio_interval: bool
    note: str


@dataclass(frozen=True)
class Strip:
    """The trials of one cell as dots, and in words those that do not count."""

    name: str
    drawing: str
    counted: int
    total: int
    rejected: tuple[str, ...]


def colours_of(results: Results) -> dict[str, int]:
    """Give each framework one colour for the whole page; with several runs, each run."""
    if len(results.runs) > 1:
        names = dict.fromkeys(cell.run for cell in results.cells)
    else:
        names = dict.fromkeys(sorted({cell.framework for cell in results.cells}))
    return {name: index % _COLOURS + 1 for index, name in enumerate(names)}


def _busy(cell: CellResult) -> str:
    said = [
        f"{title} {numbers.share(cell.utilisation[channel])}"
        for channel, title in (("gpu", "GPU"), ("cpu", "CPU"))
        if channel in cell.utilisation
    ]
    return ", ".join(said)


def _row(
    ranking: Ranking, cell: CellResult, *, top: float, colour: int, previous: str, links: Links
) -> Row:
    rate, interval = numbers.estimate(cell.rate)
    compared = cell.comparison
    greyed = not cell.is_comparable
    between = compared.interval if compared else None
    is_reference = compared is not None and compared.answer == "reference"
    return Row(
        name=ranking.name(cell),
        machine=ranking.machine(cell) if len(ranking.runs) > 1 else "",
        first=cell.key != previous,
        place=links.to(place(cell)),
        bar=bars.bar(cell.rate, top=top, colour=colour, faint=greyed) if cell.rate else "",
        rate=rate,
        interval=interval,
        meaning=_meaning(cell),
        n=cell.rate.n if cell.rate else 0,
        ratio=numbers.ratio(compared.ratio, between) if compared and not is_reference else "",
        ratio_interval=numbers.ratio_bracket(between, compared.ratio) if compared else "",
        answer="not ranked" if greyed else compared.answer if compared else "",
        why=compared.why if compared else "",
        busy=_busy(cell),
        mark=_GATE_MARKS.get(cell.gate.state, "?"),
        state=cell.gate.state,
        greyed=greyed,
    )


def _meaning(cell: CellResult) -> str:
    if cell.rate is None or cell.rate.interval is None:
        return "too few trials for an interval"
    interval = cell.rate.interval
    return f"{interval.meaning}, {interval.level * 100:.1f} %"


def chart(ranking: Ranking, colours: dict[str, int], links: Links) -> Chart:
    """Prepare one workload's ranking."""
    listed = [c for c in (*ranking.cells, *ranking.set_aside) if c.rate]
    top = bars.top_of([c.rate for c in listed if c.rate])
    rows, previous = [], ""
    for cell in listed:
        colour = _colour(cell, colours)
        rows.append(_row(ranking, cell, top=top, colour=colour, previous=previous, links=links))
        previous = cell.key
    return Chart(
        workload=ranking.workload,
        context=ranking.context,
        unit=ranking.unit,
        rows=tuple(rows),
        has_busy=any(row.busy for row in rows),
        has_comparison=any(row.answer for row in rows),
        has_ratio_interval=any(row.ratio_interval for row in rows),
        note=_note(rows),
    )


def _note(rows: Sequence[Row]) -> str:
    """Say what bars, whiskers and marks are."""
    if not rows:
        return "No cell has a figure."
    least, most = min(row.n for row in rows), max(row.n for row in rows)
    trials = "1 trial" if most == 1 else f"{most} trials"
    trials = trials if least == most else f"{least} to {most} trials"
    meanings = list(dict.fromkeys(row.meaning for row in rows))
    marks = dict.fromkeys(f"{r.mark} {r.state}" for r in rows if r.mark and r.state != "equivalent")
    said = f"{trials} per cell. Bars are medians, whiskers intervals: {'; '.join(meanings)}."
    return f"{said} Equivalence: {', '.join(marks)}." if marks else said


def _colour(cell: CellResult, colours: dict[str, int]) -> int:
    return colours.get(cell.run) or colours.get(cell.framework, 1)


def _reasons(rejected: Sequence[tuple[TrialResult, str]]) -> Iterator[str]:
    """Say why the first few trials do not count; the table below says it of all."""
    for trial, why in rejected[:_REASONS]:
        again = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
        said = f", {why}" if why else ""
        yield f"block {trial.block}{again}: {trial.verdict or trial.outcome}{said}"
    if len(rejected) > _REASONS:
        yield f"and {len(rejected) - _REASONS} more, in the page's table of all trials"


def strips(ranking: Ranking, colours: dict[str, int]) -> tuple[tuple[str, str], tuple[Strip, ...]]:
    """Prepare the dots of one workload's trials, and say what the ends of their axis are."""
    cells = [c for c in (*ranking.cells, *ranking.set_aside, *ranking.without) if c.trials]
    reach = dots.reach_of([(c.trials, c.rate) for c in cells])
    made = []
    for cell in cells:
        said = [(t, all_tables.why(t)) for t in cell.trials]
        machine = f" · {ranking.machine(cell)}" if len(ranking.runs) > 1 else ""
        made.append(
            Strip(
                name=ranking.name(cell) + machine,
                drawing=dots.dots(said, cell.rate, reach=reach, colour=_colour(cell, colours)),
                counted=sum(t.counted for t in cell.trials),
                total=len(cell.trials),
                rejected=tuple(_reasons([one for one in said if not one[0].counted])),
            )
        )
    ends = (
        f"−{numbers.number(-100 * expm1(-reach))} %",
        f"+{numbers.number(100 * expm1(reach))} %",
    )
    return ends, tuple(made)
