"""Blocks: what a section of a report is made of, as data.

The page, the terminal and the exports each show blocks in their own way: a page draws all but
``Brief``, a terminal prints ``Brief``, an export writes any ``Table`` among them. ``Gist`` stands
in for all of a section where a page folds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.analysis.context.roofline import RoofCeiling, RoofPoint
from harness.analysis.evidence import Timeline
from harness.analysis.files.ladder import Rung
from harness.analysis.tables import Table
from harness.analysis.timelines.time_grid import BinnedTimeline
from harness.verdicts.results import Estimate, Interval, TrialResult


@dataclass(frozen=True)
class Note:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Brief:
    """What a terminal says of a section; a page says it at length."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Gist:
    """What a section finds, in a line: beside its title where a page of many cells folds it."""

    text: str


@dataclass(frozen=True)
class Sheet:
    """A table; its title names it for who cannot see it."""

    table: Table
    filters: tuple[str, ...] = ()
    """The keys of the columns by which a page can filter it; a cell's factors always are."""
    rows_on_page: tuple[tuple[Any, ...], ...] | None = None
    """What a page shows of it, where that is not all; an export has every row."""


@dataclass(frozen=True)
class Stacks:
    """What a whole is made of, one bar a cell."""

    bars: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
    """The name of each bar, and its parts."""
    kind: str = "number"
    """As of a column."""
    unit: str = ""
    most: int | None = None
    """So many are drawn, the first or those that a reader chooses; all where this is None."""


@dataclass(frozen=True)
class Point:
    """A value at a count, and where it plausibly lies."""

    count: int
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Curve:
    """A value over a count; its first point is what the others are compared with."""

    name: str
    run: str
    framework: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Curves:
    """Efficiencies over devices beside the ideal, or how many times as fast as at first."""

    curves: tuple[Curve, ...]
    counts: str = "devices"
    """What the axis counts."""
    are_shares: bool = True
    """Whether 1 is all that there can be; else it is what all begin with."""


@dataclass(frozen=True)
class Rungs:
    """A ladder: rates in one unit, each with one thing more to do than the one before."""

    rungs: tuple[Rung, ...]


@dataclass(frozen=True)
class Roof:
    """Cells below the ceilings of their machine."""

    ceilings: tuple[RoofCeiling, ...]
    points: tuple[RoofPoint, ...]


@dataclass(frozen=True)
class Ratio:
    """How one cell compares."""

    name: str
    value: float
    interval: Interval | None
    answer: str


@dataclass(frozen=True)
class Ratios:
    """Ratios around 1: slower to the left, faster to the right."""

    ratios: tuple[Ratio, ...]


@dataclass(frozen=True)
class Heat:
    """A timeline as a map, one line a device, on an axis that other maps may share."""

    timeline: Timeline
    grid: BinnedTimeline
    axis_s: tuple[float, float]


@dataclass(frozen=True)
class Square:
    """What stands where a line and a column of a map meet."""

    value: float
    said: str
    """All of it in words."""


@dataclass(frozen=True)
class Squares:
    """A map over two factors; where nothing was measured, there is no square."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    squares: tuple[tuple[Square | None, ...], ...]
    """By line, then by column."""


@dataclass(frozen=True)
class Fall:
    """One part of the difference between two steps; below zero the longer step has less of it."""

    name: str
    difference_s: float
    interval: Interval | None
    said: str
    """The difference in words."""
    is_named: bool = True
    """Whether anything is known of what it is."""


@dataclass(frozen=True)
class Waterfall:
    """The way from one cell's step to a longer one's; the parts add up to the difference."""

    shorter: tuple[str, float]
    """The cell's name, and its step in seconds."""
    longer: tuple[str, float]
    falls: tuple[Fall, ...]


Drawing = Stacks | Curves | Rungs | Roof | Ratios | Heat | Squares | Waterfall


@dataclass(frozen=True)
class Chart:
    """A drawing, and the table that says the same; the table's name and title are the chart's."""

    drawing: Drawing
    table: Table
    heading: str = ""
    note: str = ""
    is_open: bool = False
    """Whether the table beside it is unfolded."""


@dataclass(frozen=True)
class CellTrials:
    """The trials of one cell, each with why it is marked or does not count."""

    name: str
    run: str
    framework: str
    rate: Estimate | None
    trials: tuple[tuple[TrialResult, str], ...]


@dataclass(frozen=True)
class Dots:
    """Trials as dots at their rates, one line a cell."""

    heading: str
    unit: str
    cells: tuple[CellTrials, ...]
    note: str = ""


@dataclass(frozen=True)
class Facts:
    """Words, each with what is to say of it."""

    items: tuple[tuple[str, str], ...]
    is_prose: bool = False
    """Whether that is sentences rather than values."""


@dataclass(frozen=True)
class Group:
    """Blocks that belong together, under a heading; where there is nothing but notes, no group."""

    blocks: tuple[Block, ...]
    heading: str = ""


@dataclass(frozen=True)
class Fold:
    """Blocks that a reader of a page unfolds."""

    title: str
    blocks: tuple[Block, ...]
    detail: str = ""
    """How much there is in it, for example."""
    is_open: bool = False
    is_printed: bool = False
    """Whether paper has it, folded or not."""


Block = Note | Brief | Gist | Sheet | Chart | Dots | Facts | Group | Fold


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Give every block, those inside of groups and folds too."""
    for block in blocks:
        yield block
        if isinstance(block, Group | Fold):
            yield from walk(block.blocks)


def tables(blocks: Iterable[Block]) -> Iterator[Table]:
    """Give every table, those beside charts too."""
    for block in walk(blocks):
        if isinstance(block, Sheet | Chart):
            yield block.table


def on_page(block: Block) -> bool:
    """Tell whether a page has something to show of a block but words about other blocks."""
    match block:
        case Sheet():
            return bool(block.table.rows if block.rows_on_page is None else block.rows_on_page)
        case Dots():
            return bool(block.cells)
        case Facts():
            return bool(block.items)
        case Group() | Fold():
            return any(map(on_page, block.blocks))
        case Chart():
            return True
    return False
