"""Prepare rankings for the page: bars, and the words beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.analysis import numbers
from harness.analysis.blocks.how_measured import sentences
from harness.analysis.context.interval_words import in_words
from harness.analysis.limits.holding_back import Limit
from harness.analysis.limits.words import sentence, short
from harness.analysis.ranking import Ranking
from harness.store.records import (
    DIFFERS,
    EQUIVALENT,
    EXAMINATION_FAILED,
    IN_PART,
    NAMED,
    NOT_CHECKED,
    NOTHING,
)
from harness.verdicts.results import CellResult
from reports.charts import bars
from reports.charts.colours import colour_of
from reports.page.cell_places import CellPlaces
from reports.page.folding import FIRST, is_folded

_GATE_MARKS = {
    EQUIVALENT: "≡",
    NAMED: "≈",
    IN_PART: "◐",
    NOT_CHECKED: "?",
    EXAMINATION_FAILED: "!",
    DIFFERS: "≠",
    NOTHING: "",
}
_OPEN = 2
"""So many long rankings are open; those of other workloads unfold."""


@dataclass(frozen=True)
class Row:
    """One line of a ranking as the page shows it."""

    name: str
    machine: str
    first: bool
    """Whether it opens a group of machines running the same cell."""
    anchor: str
    """Where the page says all that it knows of it."""
    is_rest: bool
    """Whether it is folded at first."""
    bar: str
    rate: str
    interval: str
    n: int
    ratio: str
    ratio_interval: str
    answer: str
    why: str
    busy: str
    held: str
    """What holds it back, in a few words; empty where nobody looked."""
    held_why: str
    mark: str
    state: str
    greyed: bool

    @property
    def classes(self) -> str:
        """How its line is shown."""
        opens = self.first and bool(self.machine) and not self.greyed
        marks = (("greyed", self.greyed), ("opens", opens), ("rest", self.is_rest))
        return " ".join(name for name, is_so in marks if is_so)


@dataclass(frozen=True)
class Chart:
    """A ranking with its heading."""

    workload: str
    context: str
    unit: str
    rows: tuple[Row, ...]
    has_busy: bool
    has_held: bool
    has_comparison: bool
    has_ratio_interval: bool
    note: str
    measured: tuple[str, ...]
    """How its cells shared the machine: what a reader should know first, then the rest."""
    is_folded: bool = False
    """Whether its page shows but a line of it at first."""

    @property
    def rest(self) -> int:
        """How many rows are folded at first."""
        return sum(row.is_rest for row in self.rows)

    @property
    def gist(self) -> str:
        """Its first cell and rate, for where it is folded."""
        return f"{self.rows[0].name}: {self.rows[0].rate} {self.unit}"


def folded(charts: Sequence[Chart]) -> list[Chart]:
    """Fold all long rankings of a page but the first."""
    return [replace(one, is_folded=at >= _OPEN and one.rest > 0) for at, one in enumerate(charts)]


def _busy(cell: CellResult) -> str:
    said = [
        f"{title} {numbers.share(cell.utilisation[channel])}"
        for channel, title in (("gpu", "GPU"), ("cpu", "CPU"))
        if channel in cell.utilisation
    ]
    return ", ".join(said)


def _row(
    ranking: Ranking,
    cell: CellResult,
    *,
    top: float,
    colour: int,
    previous: str,
    places: CellPlaces,
    is_rest: bool,
    held: Limit | None,
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
        anchor=places.anchors[cell.run, cell.key],
        is_rest=is_rest,
        bar=bars.bar(cell.rate, top=top, colour=colour, faint=greyed) if cell.rate else "",
        rate=rate,
        interval=interval,
        n=cell.rate.n if cell.rate else 0,
        ratio=numbers.ratio(compared.ratio, between) if compared and not is_reference else "",
        ratio_interval=numbers.ratio_bracket(between, compared.ratio) if compared else "",
        answer="not ranked" if greyed else compared.answer if compared else "",
        why=compared.why if compared else "",
        busy=_busy(cell),
        held=short(held) if held else "",
        held_why=sentence(held) if held else "",
        mark=_GATE_MARKS.get(cell.gate.state, "?"),
        state=cell.gate.state,
        greyed=greyed,
    )


def chart(
    ranking: Ranking, colours: dict[str, int], places: CellPlaces, held: Mapping[str, Limit]
) -> Chart:
    """Prepare one workload's ranking."""
    listed = [c for c in (*ranking.cells, *ranking.set_aside) if c.rate]
    top = bars.top_of([c.rate for c in listed if c.rate])
    rows, previous = [], ""
    for position, cell in enumerate(listed):
        colour = colour_of(colours, cell.run, cell.framework)
        rows.append(
            _row(
                ranking,
                cell,
                top=top,
                colour=colour,
                previous=previous,
                places=places,
                is_rest=is_folded(len(listed))
                and position >= FIRST
                and cell is not ranking.reference,
                held=held.get(cell.key),
            )
        )
        previous = cell.key
    return Chart(
        workload=ranking.workload,
        context=ranking.context,
        unit=ranking.unit,
        rows=tuple(rows),
        has_busy=any(row.busy for row in rows),
        has_held=any(row.held for row in rows),
        has_comparison=any(row.answer for row in rows),
        has_ratio_interval=any(row.ratio_interval for row in rows),
        note=_note(rows, in_words(listed)),
        measured=sentences(ranking),
    )


def _note(rows: Sequence[Row], intervals: str) -> str:
    """Say what bars, whiskers and marks are."""
    if not rows:
        return "No cell has a figure."
    least, most = min(row.n for row in rows), max(row.n for row in rows)
    trials = "1 trial" if most == 1 else f"{most} trials"
    trials = trials if least == most else f"{least} to {most} trials"
    whiskers = "" if most == 1 else f", whiskers intervals: {intervals}"
    bars = "rates, without intervals" if most == 1 else "geometric means"
    marks = dict.fromkeys(f"{r.mark} {r.state}" for r in rows if r.mark and r.state != "equivalent")
    said = f"{trials} per cell. Bars are {bars}{whiskers}."
    return f"{said} Equivalence: {', '.join(marks)}." if marks else said
