"""Make one figure of a run as SVG, as wide as its place in a paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import family
from harness.errors import UsageError, nearest
from harness.sections.contract.blocks import Chart, walk
from harness.sections.contract.section import sections
from reports.charts.colours import colours_of
from reports.charts.draw import draw
from reports.charts.svg import coordinate, element, picture
from reports.figures.panels import Panel, ranked, scattered
from reports.figures.standalone import MM_PER_PIXEL, standalone

_NARROW, _WIDE = 354.0, 640.0
_COLUMN_MM = 120.0
"""A figure narrower than this is drawn for one column, so that its words stay legible."""
_BETWEEN, _MARGIN = 14.0, 4.0
_PANELS = {"ranking": ranked, "trials": scattered}
_TITLES = {"ranking": "Ranking", "trials": "Every trial"}
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_FRAME = re.compile(r"^<svg[^>]*>|</svg>$")


@dataclass(frozen=True)
class PaperFigure:
    """A figure, and what it shows."""

    name: str
    title: str
    svg: str
    height_mm: float
    """At the width that was asked for, or else at its own."""
    parts: tuple[str, ...]
    """The drawings that it has below each other, each of which can be asked for by itself."""


@dataclass(frozen=True)
class _Drawing:
    """One drawing by its name; drawn only where it is asked for."""

    name: str
    title: str
    draw: Callable[[], Panel]


def figure(results: Results, evidence: Evidence, name: str, width_mm: float | None) -> PaperFigure:
    """Draw what is asked for: one drawing, or all of its kind below each other."""
    narrow = width_mm is not None and width_mm < _COLUMN_MM
    if family(name) in _PANELS:
        known = _of_tasks(results, family(name), narrow=narrow)
        if not known:
            raise UsageError(
                f"there is nothing to draw of {name}: no trial gave a number that counts"
            )
    else:
        known = _of_page(results, evidence, narrow=narrow)
    own = [one for one in known if name in (one.name, family(one.name))]
    if not own:
        raise _refuse_figure(name, [one.name for one in known])
    stacked = _stacked([one.draw() for one in own], own[0].title, name)
    width, height = _size(stacked)
    return PaperFigure(
        name,
        own[0].title,
        standalone(stacked, width_mm=width_mm),
        height * (MM_PER_PIXEL if width_mm is None else width_mm / width),
        tuple(one.name for one in own),
    )


def _of_tasks(results: Results, kind: str, *, narrow: bool) -> list[_Drawing]:
    """Give a drawing of each task, with a number where there are several tasks."""
    colours, wide = colours_of(results), _NARROW if narrow else _WIDE
    tasks = [one for one in results.rankings if one.cells]
    return [
        _Drawing(
            kind if len(tasks) == 1 else f"{kind}-{number}",
            _TITLES[kind],
            partial(_PANELS[kind], one, colours, wide),
        )
        for number, one in enumerate(tasks, 1)
    ]


def _of_page(results: Results, evidence: Evidence, *, narrow: bool) -> list[_Drawing]:
    """Give the charts of the page, named and numbered as their tables are."""
    colours = colours_of(results)
    return [
        _Drawing(
            block.table.name,
            block.table.title,
            partial(_panel, block, colours, narrow=narrow),
        )
        for made in sections(results, evidence).made
        for block in walk(made.blocks)
        if isinstance(block, Chart)
    ]


def _refuse_figure(name: str, known: Sequence[str]) -> UsageError:
    alike = [one for one in known if family(one) == family(name)]
    if alike:
        return UsageError(f"no figure is called '{name}'; there is {span(alike)}.")
    kinds = sorted({*_PANELS, *map(family, known)})
    return UsageError(
        f"no figure is called '{name}'.{nearest(name, kinds)}\n    Known: {', '.join(kinds)}."
    )


def span(names: Sequence[str]) -> str:
    """Name the first and the last of several numbered drawings."""
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def _panel(chart: Chart, colours: Mapping[str, int], *, narrow: bool) -> Panel:
    """Take a drawing of the page out of its frame."""
    drawn = draw(chart, colours, narrow=narrow)
    return _FRAME.sub("", drawn), *_size(drawn)


def _size(drawn: str) -> tuple[float, float]:
    found = _SIZE.search(drawn)
    assert found is not None, "every chart has a size"
    return float(found[1]), float(found[2])


def _stacked(panels: Sequence[Panel], title: str, name: str) -> str:
    """Put drawings below each other."""
    placed, top = [], _MARGIN
    for drawn, _, tall in panels:
        at = f"translate({coordinate(_MARGIN)} {coordinate(top)})"
        placed.append(element("g", drawn, transform=at))
        top += tall + _BETWEEN
    width = max((wide for _, wide, _ in panels), default=_NARROW) + 2 * _MARGIN
    return picture(width, top - _BETWEEN + _MARGIN, "".join(placed), label=title, name=name)
