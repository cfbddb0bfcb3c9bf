"""Say a run's answer in a terminal: the answer first, then rankings as text bars."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis import numbers
from harness.analysis.blocks.how_measured import how_measured
from harness.analysis.evidence import Evidence
from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.sections.contract.blocks import Brief
from harness.sections.contract.section import sections
from harness.store.records import IN_PART, NAMED, NOT_CHECKED
from harness.verdicts.results import CellResult
from reports.text.answer import SIMULATED, WARNINGS_SHOWN, Answer, answer

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_GATE_MARKS = {NAMED: "≈", IN_PART: "◐", NOT_CHECKED: "?"}
_LEAST_BAR = 8
_MOST_BAR = 48


@dataclass(frozen=True)
class _Line:
    name: str
    rate: str
    interval: str
    ratio: str
    answer: str
    share: float


def printable(text: str) -> str:
    """Drop what could steer a terminal: names come from files that others wrote."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


def text_bar(share: float, width: int) -> str:
    """Draw a bar with the resolution of an eighth of a character."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def _line(ranking: Ranking, cell: CellResult, top: float) -> _Line:
    rate, interval = numbers.estimate(cell.rate)
    compared = cell.comparison
    said = compared.answer if compared else ""
    name = f"{ranking.name(cell)} {_GATE_MARKS.get(cell.gate.state, '')}".rstrip()
    if len(ranking.runs) > 1:
        name = f"{name} · {ranking.machine(cell)}"
    ratio = ""
    if compared and said != "reference":
        ratio = numbers.ratio(compared.ratio, compared.interval)
    return _Line(
        name=printable(name),
        rate=rate,
        interval=interval if cell.rate and cell.rate.interval else "",
        ratio=ratio,
        answer=said,
        share=cell.rate.value / top if cell.rate and top else 0.0,
    )


def _ranking(ranking: Ranking, width: int) -> list[str]:
    top = max((c.rate.value for c in ranking.cells if c.rate), default=0.0)
    lines = [_line(ranking, cell, top) for cell in ranking.cells]
    if not lines:
        return []
    where = "" if len(ranking.runs) > 1 else f", {ranking.machine(ranking.cells[0])}"
    context = f", {ranking.context}" if ranking.context else ""
    unit = printable(ranking.unit)
    rate = max(len(unit), *(len(line.rate) for line in lines))
    interval = max(len("[interval]"), *(len(line.interval) for line in lines))
    ratio = max(len("×"), *(len(line.ratio) for line in lines))
    name = max(len(line.name) for line in lines)
    left = width - (2 + 2 + rate + 2 + interval + 2 + ratio + 2 + len("cannot tell"))
    is_beside = left - name - 2 >= _LEAST_BAR
    before = 2 + name + 2 if is_beside else 4
    bar = min(_MOST_BAR, left - before + 2)
    if bar < _LEAST_BAR:
        bar = 0
    drawn = []
    for line in lines:
        if not is_beside:
            drawn.append(_wrapped(line.name, width, "  ", "  "))
        named = f"  {line.name}" if is_beside else ""
        drawn.append(
            f"{named:<{before}}{text_bar(line.share, bar):<{bar}}  {line.rate:>{rate}}"
            f"  {line.interval:<{interval}}  {line.ratio:>{ratio}}  {line.answer}".rstrip()
        )
    title = printable(f"{ranking.workload}{context}{where}")
    columns = f"{unit:>{rate}}  {'[interval]':<{interval}}  {'×':>{ratio}}  reference"
    before += bar + 2
    if len(title) < before - 2:
        return [f"{title:<{before}}{columns}", *drawn]
    return [title, f"{'':<{before}}{columns}", *drawn]


def _ranked(ranking: Ranking, width: int) -> str:
    how = how_measured(ranking)
    return "\n".join(
        (*_ranking(ranking, width), *([_wrapped(how, width, "  ", "  ")] if how else ()))
    )


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        printable(text),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _brief(brief: Brief, width: int) -> str:
    lines = [_wrapped(line, width, "  ", "    ") for line in brief.lines]
    return "\n".join((printable(brief.title), *lines))


def _trust(told: Answer) -> str:
    trust = told.cards[-1]
    return f"{trust.value}; {trust.detail}." if trust.detail else f"{trust.value}."


def _warned(warnings: Sequence[str], width: int) -> str:
    return "\n".join(_wrapped(w, width, "  ! ", "    ") for w in warnings)


def render(results: Results, width: int = 100, evidence: Evidence | None = None) -> str:
    """Say the answer, the warnings, the rankings, sections in brief, and how far to trust them."""
    told, found = answer(results), sections(results, evidence)
    warnings = (*told.warnings, *found.missing)
    parts = [_wrapped(SIMULATED, width)] if results.is_simulated else []
    parts.append(_wrapped(told.question, width))
    said = [
        _wrapped(f"{workload}: {text}" if workload else text, width, "Answer: ", "        ")
        for workload, text in told.sentences
    ]
    if told.basis:
        said.append(_wrapped(told.basis, width, " " * 8, " " * 8))
    parts.append("\n".join(said))
    if warnings:
        parts.append(_warned(warnings[:WARNINGS_SHOWN], width))
    parts += [_ranked(r, width) for r in told.rankings if r.cells]
    parts += [_brief(brief, width) for made in found.made for brief in made.briefs]
    parts.append(_wrapped(_trust(told), width))
    if warnings[WARNINGS_SHOWN:]:
        parts.append(_warned(warnings[WARNINGS_SHOWN:], width))
    return "\n\n".join(parts) + "\n"
