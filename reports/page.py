"""This file makes the page: one HTML file that opens from disk, prints, and asks no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness.store.results import CellResult, Results
from reports import differences, numbers, sections, tables, words
from reports.answer import Answer, answer
from reports.charts import bars, dots
from reports.evidence import Evidence
from reports.ranking import Ranking

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).parent
_COLOURS = 8
_MOST_LISTED_TRIALS = 1500
_GATE_MARKS = {"equivalent": "≡", "named difference": "≈", "differs": "≠", "not checked": "?"}


@dataclass(frozen=True)
class Row:
    """One line of a ranking as the page shows it."""

    name: str
    machine: str
    first: bool
    """Whether it opens a group of machines running the same cell."""
    place: str
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
    note: str


@dataclass(frozen=True)
class Strip:
    """The trials of one cell as dots, and in words those that do not count."""

    name: str
    drawing: str
    counted: int
    total: int
    rejected: tuple[str, ...]


def _asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Name a text as a content security policy does."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _colours(results: Results) -> dict[str, int]:
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


def _row(ranking: Ranking, cell: CellResult, *, top: float, colour: int, previous: str) -> Row:
    rate, interval = numbers.estimate(cell.rate)
    compared = cell.comparison
    greyed = cell.gate.state == "differs"
    between = compared.interval if compared else None
    is_reference = compared is not None and compared.answer == "reference"
    return Row(
        name=ranking.name(cell),
        machine=ranking.machine(cell) if len(ranking.runs) > 1 else "",
        first=cell.key != previous,
        place=f"{cell.run}/cells/{cell.key}",
        bar=bars.bar(cell.rate, top=top, colour=colour, faint=greyed) if cell.rate else "",
        rate=rate,
        interval=interval,
        meaning=_meaning(cell),
        n=cell.rate.n if cell.rate else 0,
        ratio=numbers.ratio(compared.ratio, between) if compared and not is_reference else "",
        ratio_interval=numbers.ratio_span(between, compared.ratio) if compared and between else "",
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


def _chart(ranking: Ranking, colours: dict[str, int]) -> Chart:
    listed = [c for c in (*ranking.cells, *ranking.set_aside) if c.rate]
    top = bars.top_of([c.rate for c in listed if c.rate])
    rows, previous = [], ""
    for cell in listed:
        rows.append(_row(ranking, cell, top=top, colour=_colour(cell, colours), previous=previous))
        previous = cell.key
    return Chart(
        workload=ranking.workload,
        context=ranking.context,
        unit=ranking.unit,
        rows=tuple(rows),
        has_busy=any(row.busy for row in rows),
        has_comparison=any(row.answer for row in rows),
        note=_note(rows),
    )


def _note(rows: Sequence[Row]) -> str:
    """Say what bars, whiskers and marks are."""
    least, most = min(row.n for row in rows), max(row.n for row in rows)
    trials = f"{most} trials" if least == most else f"{least} to {most} trials"
    meanings = list(dict.fromkeys(row.meaning for row in rows))
    marks = dict.fromkeys(f"{r.mark} {r.state}" for r in rows if r.state != "equivalent")
    said = f"{trials} per cell. Bars are medians, whiskers intervals: {'; '.join(meanings)}."
    return f"{said} Equivalence: {', '.join(marks)}." if marks else said


def _colour(cell: CellResult, colours: dict[str, int]) -> int:
    return colours.get(cell.run) or colours.get(cell.framework, 1)


def _strips(ranking: Ranking, colours: dict[str, int]) -> tuple[str, tuple[Strip, ...]]:
    cells = [c for c in (*ranking.cells, *ranking.set_aside, *ranking.without) if c.trials]
    reach = dots.reach_of([(c.trials, c.rate) for c in cells])
    strips = []
    for cell in cells:
        said = [(t, tables.why(t)) for t in cell.trials]
        machine = f" · {ranking.machine(cell)}" if len(ranking.runs) > 1 else ""
        strips.append(
            Strip(
                name=ranking.name(cell) + machine,
                drawing=dots.dots(said, cell.rate, reach=reach, colour=_colour(cell, colours)),
                counted=sum(t.counted for t in cell.trials),
                total=len(cell.trials),
                rejected=tuple(
                    f"block {t.block}{f', attempt {t.attempt}' if t.attempt > 1 else ''}: "
                    f"{t.verdict or t.outcome}{f', {why}' if why else ''}"
                    for t, why in said
                    if not t.counted
                ),
            )
        )
    return f"±{numbers.number(reach * 100)} %", tuple(strips)


@dataclass(frozen=True)
class Grid:
    """A table as the page shows it: texts, what to sort by, and which columns filter."""

    name: str
    title: str
    heads: tuple[tables.Column, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[tuple[str, str], ...], ...]
    filters: tuple[int, ...]


_TEXTUAL = frozenset({"text", "name", "path", "flag"})


def _sort_key(column: tables.Column, value: object) -> str:
    if column.kind in _TEXTUAL or not isinstance(value, int | float):
        return ""
    return f"{value:.6g}"


def _grid(table: tables.Table, *, filters: Sequence[str] = ()) -> Grid | None:
    """Prepare a table; None if it has no rows, so that its section is not there."""
    if not table.rows:
        return None
    table = tables.filled(table)
    rows = tuple(
        tuple(
            (text, "" if (key := _sort_key(column, value)) == text else key)
            for text, column, value in zip(
                tables.shown_row(table, row), table.columns, row, strict=True
            )
        )
        for row in table.rows
    )
    distinct = [len({row[i][0] for row in rows}) for i in range(len(table.columns))]
    return Grid(
        name=table.name,
        title=table.title,
        heads=table.columns,
        numeric=tuple(column.kind not in _TEXTUAL for column in table.columns),
        rows=rows,
        filters=tuple(
            i
            for i, column in enumerate(table.columns)
            if (column.key in filters or column.key.startswith("factor_")) and distinct[i] > 1
        ),
    )


def _gate_grid(results: Results) -> Grid | None:
    """Prepare the gate's section, unless nothing at all was checked."""
    if all(cell.gate.state == "not checked" for cell in results.cells):
        return None
    return _grid(tables.gate(results))


def _trial_grid(results: Results) -> Grid | None:
    """Prepare the list of trials; of very many, those that do not count."""
    table = tables.trials(results)
    if len(table.rows) > _MOST_LISTED_TRIALS:
        at = [c.key for c in table.columns].index("counted")
        rows = tuple(row for row in table.rows if not row[at])
        table = tables.Table(table.name, table.title, table.columns, rows)
    return _grid(table, filters=("workload", "cell", "outcome", "verdict"))


def _facts(results: Results) -> list[tuple[str, list[tuple[str, list[tuple[str, str]]]]]]:
    """List per run what is known about machine, software and protocol."""
    return [
        (
            run.name,
            [
                (title, list(differences.flatten(facts).items()))
                for title, facts in (
                    ("Machine", run.platform),
                    ("Host", run.provenance),
                    ("Protocol", run.measure),
                    ("Environments", run.environments),
                )
                if facts
            ],
        )
        for run in results.runs
    ]


@cache
def _templates() -> Environment:
    """Make the one template environment: everything escaped, nothing undefined."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@dataclass(frozen=True)
class Figure:
    """A drawing on the page, with its table."""

    title: str
    note: str
    svg: str
    name: str
    grid: Grid | None
    packed: str


def _figures(drawings: Sequence[sections.Drawing]) -> list[Figure]:
    return [Figure(d.title, d.note, d.svg, d.name, _grid(d.table), d.packed) for d in drawings]


@dataclass(frozen=True)
class _Inline:
    """The styles and scripts of a page; only what it needs."""

    styles: tuple[tuple[str, str], ...]
    """Each with its id."""
    scripts: tuple[str, ...]

    @property
    def policy(self) -> str:
        """Allow exactly these, by their digests, and nothing from anywhere else."""
        styles = " ".join(f"'{_digest(text)}'" for _, text in self.styles)
        scripts = " ".join(f"'{_digest(text)}'" for text in self.scripts)
        return (
            f"default-src 'none'; style-src {styles}; script-src {scripts}; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        )


def _inline(*, zoom: bool) -> _Inline:
    styles = [("page-style", _asset("page.css")), ("chart-style", _asset("chart.css"))]
    scripts = [_asset("page.js")]
    if zoom:
        styles.append(("zoom-style", _asset("uplot/uPlot.min.css")))
        scripts += [_asset("uplot/uPlot.iife.min.js"), _asset("timelines.js")]
    return _Inline(tuple(styles), tuple(scripts))


def render(results: Results, evidence: Evidence | None = None) -> str:
    """Make the page."""
    shown = evidence or Evidence()
    told: Answer = answer(results)
    colours = _colours(results)
    trial_total = tables.counts(results)[1]
    trial_grid = _trial_grid(results)
    timelines = _figures(sections.timeline_drawings(shown))
    return (
        _templates()
        .get_template("page.html")
        .render(
            results=results,
            answer=told,
            charts=[_chart(r, colours) for r in told.rankings if r.cells or r.set_aside],
            cells=_grid(tables.cells(results), filters=("workload", "framework", "machine")),
            differences=_grid(differences.between_cells(results)),
            machines=_grid(differences.between_runs(results)) if len(results.runs) > 1 else None,
            splits=_figures(sections.split_drawings(shown)),
            scaling=_figures(sections.scaling_drawings(results)),
            roofline=_figures(sections.roof_drawings(shown)),
            timelines=timelines,
            strips=[(r, *_strips(r, colours)) for r in told.rankings],
            trials=trial_grid,
            trial_total=trial_total,
            trials_listed=len(trial_grid.rows) if trial_grid else 0,
            gate=_gate_grid(results),
            holes=_grid(tables.holes(results)),
            runs=_grid(tables.runs(results)),
            facts=_facts(results),
            method=words.METHOD,
            glossary=words.GLOSSARY,
            findings=_grid(sections.findings(shown)),
            inline=_inline(zoom=bool(timelines)),
            several_runs=len(results.runs) > 1,
            moment=numbers.moment(min((r.started_wall_ns for r in results.runs), default=None)),
        )
    )
