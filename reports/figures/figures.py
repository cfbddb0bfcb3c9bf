"""Make one figure of a run as SVG, as wide as its place in a paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.errors import UsageError, nearest
from harness.sections.contract.blocks import Chart, walk
from harness.sections.contract.section import sections
from reports.charts.colours import colours_of
from reports.charts.draw import draw
from reports.charts.svg import coordinate, element, picture
from reports.figures.panels import Panel, ranked, scattered
from reports.figures.standalone import standalone

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


def figure(results: Results, evidence: Evidence, name: str, width_mm: float | None) -> PaperFigure:
    """Draw what is asked for, all its charts below each other."""
    narrow = width_mm is not None and width_mm < _COLUMN_MM
    colours = colours_of(results)
    if name in _PANELS:
        title, wide = _TITLES[name], _NARROW if narrow else _WIDE
        drawn = [_PANELS[name](one, colours, wide) for one in results.rankings if one.cells]
    else:
        charts = _charts(results, evidence)
        own = [c for c in charts if re.fullmatch(rf"{re.escape(name)}(-\d+)?", c.table.name)]
        if not own:
            known = sorted({*_PANELS, *(re.sub(r"-\d+$", "", c.table.name) for c in charts)})
            hint = f"{nearest(name, known)}\n    Known: {', '.join(known)}."
            raise UsageError(f"no figure is called '{name}'.{hint}")
        title = own[0].table.title
        drawn = [_panel(draw(chart, colours, narrow=narrow)) for chart in own]
    if not drawn:
        raise UsageError(f"there is nothing to draw of {name}: no trial gave a number that counts")
    return PaperFigure(name, title, standalone(_stacked(drawn, title, name), width_mm=width_mm))


def _charts(results: Results, evidence: Evidence) -> list[Chart]:
    return [
        block
        for made in sections(results, evidence).made
        for block in walk(made.blocks)
        if isinstance(block, Chart)
    ]


def _panel(chart: str) -> Panel:
    """Take a drawing of the page out of its frame."""
    size = _SIZE.search(chart)
    assert size is not None, "every chart has a size"
    return _FRAME.sub("", chart), float(size[1]), float(size[2])


def _stacked(panels: Sequence[Panel], title: str, name: str) -> str:
    """Put drawings below each other."""
    placed, top = [], _MARGIN
    for drawn, _, tall in panels:
        at = f"translate({coordinate(_MARGIN)} {coordinate(top)})"
        placed.append(element("g", drawn, transform=at))
        top += tall + _BETWEEN
    width = max((wide for _, wide, _ in panels), default=_NARROW) + 2 * _MARGIN
    return picture(width, top - _BETWEEN + _MARGIN, "".join(placed), label=title, name=name)
