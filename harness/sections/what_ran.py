"""The section of what really ran in each cell, as the frameworks themselves tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.analysis.evidence import Evidence
from harness.analysis.numbers import UNKNOWN
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table, filled, shown_row
from harness.sections.contract.blocks import Block, Facts, Fold, Gist, Note, Sheet
from harness.sections.contract.section import Section
from harness.units import counted
from harness.verdicts.results import CellResult
from harness.verdicts.what_ran import NOT_PROBED

_NAMES = ("workload", "cell", "machine")
_COLUMNS = (
    Column("workload", "workload", "name"),
    Column("cell", "cell", "name"),
    Column("machine", "machine", "name"),
    Column("contradictions", "asked, and not done", "long"),
    Column("computed", "computed in", "name"),
    Column("computed_by", "measured by", "long"),
    Column("threads", "threads", "count"),
    Column("interop_threads", "interop threads", "count"),
    Column("busy_threads", "busy threads", "count"),
    Column("clock", "clock", "name"),
    Column("engine", "engine", "name"),
    Column("blas", "BLAS", "name"),
    Column("graph", "graph mode", "flag"),
    Column("input_s", "input of a step", "seconds"),
    Column("forward_s", "forward pass", "seconds"),
    Column("backward_s", "backward pass", "seconds"),
    Column("layout", "layout", "name"),
    Column("onednn_isa", "oneDNN takes", "long"),
    Column("onednn_primitives", "oneDNN primitives a step", "number"),
    Column("onednn_reorders", "reorders a step", "number"),
    Column("compiler", "compiler"),
    Column("compiled_graphs", "graphs", "count"),
    Column("graph_breaks", "graph breaks", "count"),
    Column("fusions", "fusions", "count"),
    Column("deterministic", "deterministic", "flag"),
    Column("tf32_products", "TF32 products", "flag"),
    Column("tf32_convolutions", "TF32 convolutions", "flag"),
    Column("cudnn_benchmark", "cuDNN benchmarks", "flag"),
    Column("first_step_cold_s", "to first step, empty caches", "seconds"),
    Column("compile_s", "compiling", "seconds"),
    Column("variables", "variables", "long"),
    Column("probe", "probe"),
)
_TOLD = ("clock", "engine", "graph", "layout")


def what_ran(results: Results) -> Table:
    """Lay out one row per cell that told something; its probe, or its trials where none can be."""
    rows = [
        (ranking.workload, ranking.name(cell), ranking.machine(cell), *_row(cell))
        for ranking in results.rankings
        for cell in (*ranking.cells, *ranking.set_aside, *ranking.without)
        if cell.ran.probe != NOT_PROBED or cell.ran.contradictions or _tells(cell)
    ]
    return Table("what-ran", "What really ran in each cell", _COLUMNS, tuple(rows))


def _tells(cell: CellResult) -> bool:
    """Whether a framework without a probe says in its trials how it computed."""
    return any(cell.ran.facts.get(name) is not None for name in _TOLD)


def _by_cell(table: Table) -> Iterator[tuple[str, str]]:
    """Say of each cell what is known; first, what is the same of all. No table is as wide."""
    names = [at for at, column in enumerate(table.columns) if column.key in _NAMES]
    others = [at for at, column in enumerate(table.columns) if column.key not in _NAMES]
    texts = [shown_row(table, row) for row in table.rows]
    alike = {at for at in others if len(texts) > 1 and len({row[at] for row in texts}) == 1}

    def words(row: Sequence[str], places: Iterable[int]) -> str:
        known = [at for at in places if row[at] != UNKNOWN]
        return " · ".join(f"{table.columns[at].title}: {row[at]}" for at in known)

    if alike:
        yield "all cells below", words(texts[0], sorted(alike))
    for row in texts:
        told = words(row, (at for at in others if at not in alike))
        yield " · ".join(row[at] for at in names), told or "nothing else"


def _row(cell: CellResult) -> tuple[Any, ...]:
    facts = cell.ran.facts
    shown = {
        **{name: facts.get(name) for name in (column.key for column in _COLUMNS)},
        "contradictions": "; ".join(map(str, cell.ran.contradictions)) or None,
        "computed": _shares(facts.get("computed")),
        "onednn_primitives": _sum(facts.get("onednn_primitives")),
        "first_step_cold_s": cell.ran.first_step_cold_s,
        "compile_s": cell.ran.compile_s,
        "blas": cell.versions.get("blas"),
        "variables": _variables(facts.get("variables")),
        "probe": cell.ran.probe,
    }
    return tuple(shown[column.key] for column in _COLUMNS[3:])


def _gist(results: Results) -> Gist:
    """Say in how many cells something else ran than was asked for."""
    total = counted(len(results.cells), "cell")
    apart = sum(bool(cell.ran.contradictions) for cell in results.cells)
    if apart:
        return Gist(f"{apart} of {total} did not do all that was asked")
    return Gist(f"nothing contradicts what was asked of {total}")


def _shares(computed: Mapping[str, float] | None) -> str | None:
    if not computed:
        return None
    if len(computed) == 1:
        return next(iter(computed))
    return ", ".join(f"{name} {share * 100:.0f} %" for name, share in computed.items())


def _variables(seen: Mapping[str, str] | None) -> str | None:
    return ", ".join(f"{name}={value}" for name, value in (seen or {}).items()) or None


def _sum(counts: Mapping[str, float] | None) -> float | None:
    return None if counts is None else float(sum(counts.values()))


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    yield Note(
        "What the frameworks and their libraries say they used, watched once per cell outside any "
        "timed trial; of a framework without a probe, what its trials say. Times of input and of "
        "both passes are a program's own, from its log. “Compiling” is what a compiler counted "
        "itself. Where a framework keeps that to itself it is unknown, and the first step from "
        "empty caches less a usual step is the most it can have been. “Variables” are those "
        "that steer libraries, as the workers had them."
    )
    table = what_ran(results)
    yield _gist(results)
    yield Facts(tuple(_by_cell(filled(table))))
    if table.rows:
        yield Fold("The same as a table", (Sheet(table),))


SECTION = Section("What really ran", 1400, _blocks)
