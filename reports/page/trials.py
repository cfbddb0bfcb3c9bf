"""Prepare the trials of each cell for the page: dots, and in words those that do not count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import expm1

from harness.analysis import numbers
from harness.sections.contract.blocks import CellTrials, Dots
from reports.charts import dots
from reports.page.rankings import colour_of

_REASONS = 3
"""So many rejected trials of a cell are explained beside its dots."""


@dataclass(frozen=True)
class Strip:
    """The trials of one cell as dots, and in words those that do not count."""

    name: str
    drawing: str
    counted: int
    total: int
    rejected: tuple[str, ...]


@dataclass(frozen=True)
class Strips:
    """The cells of one ranking, and what the ends of their axis are."""

    heading: str
    ends: tuple[str, str]
    strips: tuple[Strip, ...]


def strips(of: Dots, colours: dict[str, int]) -> Strips:
    """Draw all on one axis."""
    alike = [([trial for trial, _ in cell.trials], cell.rate) for cell in of.cells]
    reach = dots.reach_of(alike)
    ends = (
        f"−{numbers.number(-100 * expm1(-reach))} %",
        f"+{numbers.number(100 * expm1(reach))} %",
    )
    return Strips(of.heading, ends, tuple(_strip(cell, reach, colours) for cell in of.cells))


def _strip(cell: CellTrials, reach: float, colours: dict[str, int]) -> Strip:
    colour = colour_of(colours, cell.run, cell.framework)
    return Strip(
        name=cell.name,
        drawing=dots.dots(cell.trials, cell.rate, reach=reach, colour=colour),
        counted=sum(trial.counted for trial, _ in cell.trials),
        total=len(cell.trials),
        rejected=tuple(_reasons(cell)),
    )


def _reasons(cell: CellTrials) -> Iterator[str]:
    """Say why the first few trials do not count; the table below says it of all."""
    rejected = [(trial, why) for trial, why in cell.trials if not trial.counted]
    for trial, why in rejected[:_REASONS]:
        again = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
        said = f", {why}" if why else ""
        yield f"block {trial.block}{again}: {trial.verdict or trial.outcome}{said}"
    if len(rejected) > _REASONS:
        yield f"and {len(rejected) - _REASONS} more, in the page's table of all trials"
