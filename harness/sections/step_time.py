"""The section of step time: where a step's time goes, or where nobody split it, its tail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from harness.analysis import numbers
from harness.analysis.evidence import Evidence
from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.analysis.scaling.gradient_exchange import splits
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Chart, Gist, Stacks
from harness.sections.contract.section import Section
from harness.units import counted
from harness.verdicts.results import CellResult

_MOST_BARS = 12
_TAIL_NOTE = (
    "The first piece ends at the median step (p50), the next at the time 95 % of steps keep, the "
    "last at that of 99 % where trials have a hundred windows; medians over the trials that count."
)
_COLUMNS = (
    Column("cell", "cell", "name"),
    Column("part", "part"),
    Column("seconds", "time", "seconds"),
)
_Bar = tuple[str, tuple[tuple[str, float], ...]]


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    """Draw the parts of a step where they were measured, else its percentiles."""
    split = [(one.name, one.parts_s) for one in splits(results)]
    if split:
        yield Gist(f"{counted(len(split), 'cell')}, part by part")
        yield _chart("step-time", "Where a step's time goes", split, heading="Where the time goes")
        return
    for index, ranking in enumerate(results.rankings, 1):
        bars = [bar for cell in ranking.cells if (bar := _tail(ranking, cell))]
        if bars:
            if index == 1:
                yield _gist(ranking, *bars[0])
            yield _chart(
                f"step-time-{index}",
                f"Step time of {ranking.workload}",
                bars,
                heading=ranking.workload,
                note=_note(ranking, len(bars)),
            )


def _tail(ranking: Ranking, cell: CellResult) -> _Bar | None:
    ends = [("to p50", "p50_s"), ("to p95", "p95_s"), ("to p99", "p99_s")]
    parts, before = [], 0.0
    for name, key in ends:
        known = [value for t in cell.trials if t.counted and (value := getattr(t, key))]
        if not known:
            break
        parts.append((name, max(0.0, median(known) - before)))
        before = max(before, median(known))
    machine = f" · {ranking.machine(cell)}" if len(ranking.runs) > 1 else ""
    return (ranking.name(cell) + machine, tuple(parts)) if parts else None


def _gist(ranking: Ranking, name: str, parts: tuple[tuple[str, float], ...]) -> Gist:
    """Say of the fastest cell how long half of its steps take, and almost all."""
    last, _ = parts[-1]
    whole = numbers.seconds(sum(seconds for _, seconds in parts))
    tail = f", {last.removeprefix('to ')} {whole}" if len(parts) > 1 else ""
    return Gist(f"p50 {numbers.seconds(parts[0][1])}{tail} in {ranking.workload} · {name}")


def _note(ranking: Ranking, bars: int) -> str:
    sizes = {t.steps_per_window for c in ranking.cells for t in c.trials if t.steps_per_window}
    sentences = [_TAIL_NOTE]
    if sizes - {1}:
        sentences.append(f"Of means over up to {max(sizes)} steps, as steps are short.")
    if bars > _MOST_BARS:
        fastest = f"The {_MOST_BARS} fastest of {bars} cells"
        sentences.append(f"{fastest} are drawn, or of those that a filter leaves.")
    return " ".join(sentences)


def _chart(name: str, title: str, bars: Sequence[_Bar], *, heading: str, note: str = "") -> Chart:
    most = _MOST_BARS if len(bars) > _MOST_BARS else None
    rows = tuple((cell, part, seconds) for cell, parts in bars[:most] for part, seconds in parts)
    table = Table(name, title, _COLUMNS, rows)
    return Chart(Stacks(tuple(bars), "seconds", most=most), table, heading, note)


SECTION = Section("How long a step takes", 400, _blocks, contents="Step time")
