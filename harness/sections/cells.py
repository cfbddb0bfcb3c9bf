"""The section of every cell with all its numbers, and whether that is normal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from harness.analysis.blocks.how_measured import in_a_word
from harness.analysis.cell_names import factor_value
from harness.analysis.context.closest_figure import Match, normal
from harness.analysis.context.derived import Derived, derived, work_per_joule
from harness.analysis.evidence import Evidence
from harness.analysis.ranking import side_word
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Brief, Note, Sheet
from harness.sections.contract.columns import RATE_COLUMNS, parts, place
from harness.sections.contract.section import EVERY_CELL, Section
from harness.store.outcome import Ended
from harness.store.records import RunInfo
from harness.verdicts.results import CellResult, TrialResult

_MOST_BRIEF = 3
"""So many cells of a ranking are held against published figures in a terminal; a page does all."""


def _worst_verdict(cell: CellResult) -> str | None:
    """Name the worst verdict among the trials that count; what was rejected is told apart."""
    verdicts = [t.verdict for t in cell.trials if t.counted and t.verdict]
    if not verdicts:
        return next((t.outcome for t in cell.trials if t.outcome != Ended.OK), None)
    doubted = sorted({v for v in verdicts if v != "valid"})
    return ", ".join(doubted) or "valid"


def _middle(cell: CellResult, pick: Callable[[TrialResult], float | None]) -> float | None:
    """Take the median over counted trials of something that needs no interval."""
    found = sorted(v for t in cell.trials if t.counted and (v := pick(t)) is not None)
    if not found:
        return None
    half = len(found) // 2
    return found[half] if len(found) % 2 else (found[half - 1] + found[half]) / 2


def _peak(cell: CellResult, pick: Callable[[TrialResult], int | None]) -> int | None:
    return max((v for t in cell.trials if t.counted and (v := pick(t)) is not None), default=None)


_AFTER_FACTORS = (
    *RATE_COLUMNS,
    Column("p50_s", "step p50", "seconds"),
    Column("p95_s", "step p95", "seconds"),
    Column("p99_s", "step p99", "seconds"),
    Column("steps_per_window", "steps per window", "count"),
    Column("first_step_s", "first step", "seconds"),
    Column("first_step_cold_s", "to first step, empty caches", "seconds"),
    Column("compile_s", "compiling", "seconds"),
    Column("epoch_s", "time per epoch", "seconds"),
    Column("gpu", "GPU busy", "share"),
    Column("cpu", "CPU busy", "share"),
    Column("data_wait", "data wait", "share"),
    Column("peak_rss_bytes", "memory", "bytes"),
    Column("peak_device_bytes", "device memory", "bytes"),
    Column("power_w", "power, W", "number"),
    Column("work_per_joule", "work per joule", "number"),
    Column("gflops", "GFLOP/s (6 × MACs)", "number"),
    Column("share_of_ceiling", "of the ceiling", "share"),
    Column("per_node_hour", "work per node-hour", "number"),
    Column("per_price", "work per unit of price", "number"),
    Column("currency", "currency"),
    Column("derived_mark", "mark", "long"),
    Column("turns", "shared the machine", "long"),
    Column("verdict", "verdict"),
    Column("gate", "equivalence"),
    Column("published", "is that normal?", "long"),
    Column("directory", "raw data", "path"),
)


def _cell_row(
    cell: CellResult,
    run: RunInfo | None,
    name: str,
    machine: str,
    factors: Sequence[str],
    published: Match | None,
) -> tuple[Any, ...]:
    value, interval, n = parts(cell.rate)
    comparison = cell.comparison
    more = derived(cell, run) if run is not None else Derived()
    return (
        name,
        cell.workload,
        cell.framework,
        machine,
        *(factor_value(cell, name) for name in factors),
        value,
        interval,
        cell.rate.unit if cell.rate else cell.unit,
        n,
        comparison.ratio if comparison else None,
        comparison.interval if comparison else None,
        comparison.answer if comparison else None,
        _middle(cell, lambda t: t.p50_s),
        _middle(cell, lambda t: t.p95_s),
        _middle(cell, lambda t: t.p99_s),
        _middle(cell, lambda t: t.steps_per_window),
        _middle(cell, lambda t: t.first_step_s),
        cell.ran.first_step_cold_s,
        cell.ran.compile_s,
        cell.epoch_s.value if cell.epoch_s else None,
        cell.utilisation.get("gpu"),
        cell.utilisation.get("cpu"),
        cell.utilisation.get("data_wait"),
        _peak(cell, lambda t: t.peak_rss_bytes),
        _peak(cell, lambda t: t.peak_device_bytes),
        cell.utilisation.get("power_w"),
        work_per_joule(cell),
        more.flops / 1e9 if more.flops is not None else None,
        more.share_of_ceiling,
        more.per_node_hour,
        more.per_price,
        more.currency,
        more.mark,
        in_a_word(cell),
        _worst_verdict(cell),
        cell.gate.state,
        str(published) if published else None,
        place(cell),
    )


def _factor_names(results: Results) -> list[str]:
    """List the factors worth a column: those that vary and have no column already."""
    return [name for name in results.varied if name not in ("workload", "framework")]


def cells(results: Results, normal: Mapping[tuple[str, str], Match]) -> Table:
    """Lay out everything known about each cell, one row per cell."""
    factors = _factor_names(results)
    columns = (
        Column("cell", "cell", "name"),
        Column("workload", "workload", "name"),
        Column("framework", "framework", "name"),
        Column("machine", side_word(results.runs), "name"),
        *(Column(f"factor_{name}", name.replace("_", " "), "name") for name in factors),
        *_AFTER_FACTORS,
    )
    runs = {run.name: run for run in results.runs}
    rows = [
        _cell_row(
            cell,
            runs.get(cell.run),
            ranking.name(cell),
            ranking.machine(cell),
            factors,
            normal.get((cell.run, cell.key)),
        )
        for ranking in results.rankings
        for cell in (*ranking.cells, *ranking.set_aside, *ranking.without)
    ]
    return Table("cells", "Every cell with all its numbers", columns, tuple(rows))


def _normal(results: Results, normal: Mapping[tuple[str, str], Match]) -> Iterator[str]:
    """Hold the fastest cells against published figures; they inform and judge nothing."""
    ranked = results.rankings
    for ranking in ranked:
        for cell in ranking.cells[:_MOST_BRIEF]:
            match = normal.get((cell.run, cell.key))
            if match is not None:
                where = f"{ranking.workload}, " if len(ranked) > 1 else ""
                yield f"{where}{ranking.name(cell)}: {match}"


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    found = normal(results)
    yield Note(
        "Rates are geometric means over n trials with their interval; steps are medians over "
        "trials. “–” is unknown, never zero."
    )
    yield Sheet(cells(results, found))
    yield Brief("Is that normal? For information:", tuple(_normal(results, found)))


SECTION = Section("Every cell", EVERY_CELL, _blocks)
