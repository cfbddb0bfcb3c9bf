"""Prepare a section's blocks for the page's template: texts, drawings, what a browser unpacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.sections.contract.blocks import (
    Block,
    Brief,
    Chart,
    Dots,
    Facts,
    Fold,
    Gist,
    Group,
    Heat,
    Sheet,
    Stacks,
    on_page,
    walk,
)
from harness.sections.contract.section import Made
from reports.charts.draw import amount, draw
from reports.page.cell_places import CellPlaces, in_page
from reports.page.folding import FIRST, is_folded
from reports.page.grid import Grid, grid
from reports.page.links import Links
from reports.page.timeline_packing import MOST_CHARACTERS, packed_together
from reports.page.trials import strips

_FIRST_SENTENCES = 3
"""Of many sentences, each of some lines."""
Shown = tuple[str, Any]
"""The template's macro, and what it is given."""


@dataclass(frozen=True)
class Figure:
    """A chart as the page shows it: for wide and narrow windows, with its table."""

    name: str
    chart: Chart
    wide: str
    narrow: str
    grid: Grid | None
    packed: str
    """The numbers to zoom into, for the browser to unpack; empty where there are none."""
    bars: str
    """All bars where only the first are drawn, for the browser to draw others; else empty."""
    raw: str
    """Where its raw readings lie, from the page; empty where they were not written beside it."""


@dataclass(frozen=True)
class Canvas:
    """What all blocks of a page have in common."""

    links: Links
    places: CellPlaces
    colours: dict[str, int]
    packed: Mapping[str, str]
    raw: Mapping[str, str]
    """Where the raw readings of each timeline's chart lie, from the page."""


@dataclass(frozen=True)
class Part:
    """A section as the page shows it: open, or as a line that unfolds."""

    made: Made
    is_folded: bool
    gist: str
    """What stands beside its title while it is folded."""
    blocks: list[Shown]


def part(made: Made, canvas: Canvas, *, is_folded: bool) -> Part:
    """Prepare a section; one that is but a fold is not folded twice."""
    match made.blocks:
        case (Fold(title=title, blocks=blocks),) if is_folded:
            return Part(made, is_folded, title, shown(blocks, canvas))
    return Part(made, is_folded, made.gist, shown(made.blocks, canvas))


def packings(blocks: Iterable[Block]) -> dict[str, str]:
    """Pack the numbers of all timelines within one budget, by the names of their charts."""
    found = {
        block.table.name: block.drawing.timeline
        for block in walk(blocks)
        if isinstance(block, Chart) and isinstance(block.drawing, Heat)
    }
    return dict(zip(found, packed_together(list(found.values()), MOST_CHARACTERS), strict=True))


def shown(blocks: Iterable[Block], canvas: Canvas) -> list[Shown]:
    """Prepare all that a page shows of some blocks; of what is long, the first."""
    return _prepared((one for block in blocks for one in _begun(block)), canvas)


def _begun(block: Block) -> Iterator[Block]:
    """Fold all but the first of many words, and draw the first of many bars."""
    match block:
        case Facts(items) if is_folded(len(items)):
            first = _FIRST_SENTENCES if block.is_prose else FIRST
            yield replace(block, items=items[:first])
            yield Fold(f"{len(items) - first} more", (replace(block, items=items[first:]),))
        case Chart(Stacks(most=None) as whole) if is_folded(len(whole.bars)):
            told = (
                f"The first {FIRST} of {len(whole.bars)} cells are drawn, or of those that a filter"
                " leaves; the table has all."
            )
            drawn = replace(whole, most=FIRST)
            yield replace(block, drawing=drawn, note=f"{block.note} {told}".strip())
        case _:
            yield block


def _prepared(blocks: Iterable[Block], canvas: Canvas) -> list[Shown]:
    kept = [block for block in blocks if not isinstance(block, Brief | Gist)]
    return [_shown(block, canvas) for block in kept if _has_place(block)]


def _has_place(block: Block) -> bool:
    return on_page(block) or not isinstance(block, Sheet | Dots | Facts | Group | Fold)


def _shown(block: Block, canvas: Canvas) -> Shown:
    kind = type(block).__name__.lower()
    match block:
        case Sheet():
            table = block.table
            if block.rows_on_page is not None:
                table = replace(table, rows=block.rows_on_page)
            return kind, grid(
                table, filters=block.filters, links=canvas.links, places=canvas.places
            )
        case Chart():
            return kind, _figure(block, canvas)
        case Dots():
            return kind, strips(block, canvas.colours, canvas.places)
        case Group():
            return kind, {"of": block, "blocks": shown(block.blocks, canvas)}
        case Fold():  # who unfolds it wants all of it
            return kind, {"of": block, "blocks": _prepared(block.blocks, canvas)}
    return kind, block


def _figure(chart: Chart, canvas: Canvas) -> Figure:
    name = chart.table.name
    return Figure(
        name=name,
        chart=chart,
        wide=draw(chart, canvas.colours),
        narrow=draw(chart, canvas.colours, narrow=True),
        grid=grid(chart.table),
        packed=canvas.packed.get(name, ""),
        bars=_bars(chart, canvas.places),
        raw=canvas.raw.get(name, ""),
    )


def _bars(chart: Chart, places: CellPlaces) -> str:
    """Give each bar as its cell's place among all, its length in words, and its parts."""
    match chart.drawing:
        case Stacks(bars=bars, most=int()) as whole:
            parts = list(dict.fromkeys(part for _, pieces in bars for part, _ in pieces))
            cells = [places.place_of(name, chart.heading) for name, _ in bars]
            if None in cells:  # one that is called otherwise than its cell
                return ""
            told = [
                [
                    cell,
                    amount(whole, sum(length for _, length in pieces)),
                    *(float(f"{dict(pieces).get(part, 0.0):.4g}") for part in parts),
                ]
                for cell, (_, pieces) in zip(cells, bars, strict=True)
            ]
            said = {"under": chart.heading, "parts": parts, "bars": told}
            return in_page(said)
    return ""
