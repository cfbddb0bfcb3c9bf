"""Draw rankings and trials as figures: what the page draws in the cells of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.analysis import numbers
from harness.analysis.ranking import Ranking
from harness.verdicts.results import CellResult, TrialResult
from reports.charts.bars import top_of
from reports.charts.colours import colour_of
from reports.charts.dots import Axes, axes_of
from reports.charts.svg import element, log_ticks, more_height, text, ticks
from reports.figures.row_words import drawn as words_drawn
from reports.figures.row_words import set_alike

_ROW, _HEAD, _FOOT = 34.0, 24.0, 22.0
_BAR, _MIDDLE = 10.0, 24.0
"""How high a bar is, and where in its row its middle lies: below a line of words."""
_REACH = 8.0
"""How far a line of the axis reaches around the middle of a row: not into the words above."""
_ROOM = 46.0
"""What a number below an axis needs."""

Panel = tuple[str, float, float]
"""What is drawn, how wide and how high it is."""


def ranked(ranking: Ranking, colours: Mapping[str, int], width: float) -> Panel:
    """Draw each cell's rate as a bar from zero, its words above it."""
    cells = [cell for cell in (*ranking.cells, *ranking.set_aside) if cell.rate]
    scale = width / top_of([cell.rate for cell in cells if cell.rate])
    words = set_alike([(_named(ranking, cell), _rated(cell)) for cell in cells], width)
    drawn, top = [_heading(ranking)], _HEAD
    for cell, lines in zip(cells, words, strict=True):
        assert cell.rate is not None
        drawn += words_drawn(lines, top, width)
        top += more_height(lines)
        kind = f"s{colour_of(colours, cell.run, cell.framework)}"
        kind += "" if cell.is_comparable else " faint"
        middle = top + _MIDDLE
        long = cell.rate.value * scale
        drawn.append(
            element("rect", class_=kind, x=0.0, y=middle - _BAR / 2, width=long, height=_BAR)
        )
        if cell.rate.interval:
            ends = (cell.rate.interval.low * scale, cell.rate.interval.high * scale)
            drawn += _whisker(*ends, middle)
        top += _ROW
    return "".join(drawn), width, top


def _rated(cell: CellResult) -> str:
    value, interval = numbers.estimate(cell.rate)
    compared = cell.comparison
    if compared is None or compared.answer == "reference" or compared.ratio is None:
        return f"{value} {interval}"
    return f"{value} {interval}  {numbers.ratio(compared.ratio, compared.interval)} ×"


def _named(ranking: Ranking, cell: CellResult) -> str:
    machine = f" · {ranking.machine(cell)}" if len(ranking.runs) > 1 else ""
    return f"{ranking.name(cell)}{machine}"


def _heading(ranking: Ranking) -> str:
    context = f", {ranking.context}" if ranking.context else ""
    return text(0, 12, f"{ranking.workload}{context} ({ranking.unit})", class_="soft")


def _whisker(low: float, high: float, middle: float) -> list[str]:
    return [
        element("line", class_="halo", x1=low, x2=high, y1=middle, y2=middle),
        element("line", class_="whisker", x1=low, x2=high, y1=middle, y2=middle),
        *(
            element("line", class_="whisker", x1=end, x2=end, y1=middle - 4, y2=middle + 4)
            for end in (low, high)
        ),
    ]


def scattered(ranking: Ranking, colours: Mapping[str, int], width: float) -> Panel:
    """Draw each trial as a dot at its rate, those that do not count as crosses."""
    cells = [c for c in (*ranking.cells, *ranking.set_aside, *ranking.without) if c.trials]
    axes = axes_of([(cell.trials, cell.rate) for cell in cells])
    words = set_alike([(_named(ranking, cell), _counted(cell)) for cell in cells], width)
    middles, bottom = [], _HEAD
    for lines in words:
        middles.append(bottom + more_height(lines) + _MIDDLE)
        bottom += more_height(lines) + _ROW
    drawn = [_heading(ranking), *_axis(axes, width, middles, bottom)]
    for cell, lines, middle in zip(cells, words, middles, strict=True):
        drawn += words_drawn(lines, middle - more_height(lines) - _MIDDLE, width)
        kind = f"s{colour_of(colours, cell.run, cell.framework)}"
        if cell.rate and cell.rate.interval:
            low, high = (_at(axes, end, width) for end in _ends(cell))
            wide = max(1.0, high - low)
            band = element(
                "rect", class_=f"{kind} band", x=low, y=middle - 7, width=wide, height=14.0
            )
            drawn.append(band)
        drawn += [_dot(trial, _at(axes, trial.rate, width), middle, kind) for trial in _known(cell)]
    return "".join(drawn), width, bottom + _FOOT


def _counted(cell: CellResult) -> str:
    return f"n = {sum(trial.counted for trial in cell.trials)}"


def _ends(cell: CellResult) -> tuple[float, float]:
    assert cell.rate is not None
    assert cell.rate.interval is not None
    return cell.rate.interval.low, cell.rate.interval.high


def _known(cell: CellResult) -> Sequence[TrialResult]:
    return [trial for trial in cell.trials if trial.rate is not None]


def _at(axes: Axes, rate: float | None, width: float) -> float:
    return axes.absolute(rate or 0.0) / 100 * width


def _dot(trial: TrialResult, across: float, middle: float, kind: str) -> str:
    if trial.counted:
        return element("circle", class_=kind, cx=across, cy=middle, r=3.5)
    return text(across, middle + 5, "×", class_="cross")


def _axis(axes: Axes, width: float, middles: Sequence[float], bottom: float) -> list[str]:
    """Draw round values that leave each other room, and their lines beside dots, not words."""
    ends = axes.rates.low, axes.rates.high
    drawn, last = [], -_ROOM
    for value in log_ticks(*ends) if axes.rates.log else ticks(*ends, 4):
        across = _at(axes, value, width)
        if across - last < _ROOM or not _ROOM / 2 <= across <= width - _ROOM / 2:
            continue
        last = across
        drawn += [
            element("line", class_="grid", x1=across, x2=across, y1=y - _REACH, y2=y + _REACH)
            for y in middles
        ]
        words = numbers.number(value)
        drawn.append(text(across, bottom + 16, words, text_anchor="middle", class_="soft"))
    return drawn
