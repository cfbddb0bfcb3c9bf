"""Prepare the trials of each cell for the page: dots, and in words those that do not count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.analysis import numbers
from harness.sections.contract.blocks import CellTrials, Dots
from harness.store.layout import PILOT
from reports.charts import dots
from reports.charts.colours import colour_of
from reports.page.cell_places import CellPlaces
from reports.page.folding import rest

_REASONS = 3
"""So many rejected trials of a cell are explained beside its dots."""


@dataclass(frozen=True)
class Strip:
    """The trials of one cell as dots, and in words those that do not count."""

    name: str
    anchor: str
    """Where the page says all that it knows of the cell."""
    drawing: str
    counted: int
    total: int
    rejected: tuple[str, ...]


@dataclass(frozen=True)
class Strips:
    """The cells of one ranking, and the words on their axis: of rates, and relative to each."""

    heading: str
    axis: tuple[tuple[str, str], ...]
    strips: tuple[Strip, ...]
    rest: int
    """So many are folded at first."""
    note: str


def strips(of: Dots, colours: dict[str, int], places: CellPlaces) -> Strips:
    """Draw all on one axis."""
    alike = [([trial for trial, _ in cell.trials], cell.rate) for cell in of.cells]
    axes = dots.axes_of(alike)
    reach = dots.factor_of(axes)
    scale = f"{of.unit}, logarithmic" if axes.rates.log else of.unit
    axis = (
        (numbers.number(axes.rates.low), f"−{numbers.number(100 - 100 / reach)} %"),
        (scale, "each cell's own rate"),
        (numbers.number(axes.rates.high), f"+{numbers.number(100 * reach - 100)} %"),
    )
    drawn = tuple(_strip(cell, axes, colours, places) for cell in of.cells)
    return Strips(of.heading, axis, drawn, rest(len(drawn)), of.note)


def _strip(cell: CellTrials, axes: dots.Axes, colours: dict[str, int], places: CellPlaces) -> Strip:
    colour = colour_of(colours, cell.run, cell.framework)
    return Strip(
        name=cell.name,
        anchor=places.anchors.get((cell.run, cell.trials[0][0].cell_key), ""),
        drawing=dots.dots(cell.trials, cell.rate, axes=axes, colour=colour),
        counted=sum(trial.counted for trial, _ in cell.trials),
        total=sum(trial.block != PILOT for trial, _ in cell.trials),
        rejected=tuple(_reasons(cell)),
    )


def _reasons(cell: CellTrials) -> Iterator[str]:
    """Say why the first few trials do not count; the table below says it of all."""
    rejected = [(trial, why) for trial, why in cell.trials if not trial.counted]
    for trial, why in rejected[:_REASONS]:
        verdict = trial.verdict or trial.outcome
        said = ", ".join(word for word in (verdict if verdict != "valid" else "", why) if word)
        yield f"{dots.name_of(trial)}: {said or 'not counted'}"
    if len(rejected) > _REASONS:
        yield f"and {len(rejected) - _REASONS} more, in the page's table of all trials"
