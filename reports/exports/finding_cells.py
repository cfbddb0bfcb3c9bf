"""Say which cells of a plan a study's finding is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.plan.cell import Cell
from harness.plan.plan import Plan
from harness.study.finding import FindingTable
from harness.study.matrix import selectable, selection


@dataclass(frozen=True)
class FindingCells:
    """The cells that could answer a finding, by their labels."""

    of: tuple[str, ...]
    over: tuple[str, ...]
    is_whole: bool
    """Whether every side that the finding names has a cell."""


def finding_cells(plan: Plan, finding: FindingTable) -> FindingCells:
    """Find the cells of a plan that a finding names, on either side."""
    of = _taken(plan, finding.of)
    over = () if finding.over is None else _taken(plan, finding.over)
    return FindingCells(of, over, bool(of) and (finding.over is None or bool(over)))


def _taken(plan: Plan, wanted: dict[str, Any]) -> tuple[str, ...]:
    takes = selection(wanted).takes
    return tuple(cell.label for cell in plan.cells if takes(_said(cell)))


def _said(cell: Cell) -> dict[str, Any]:
    factors = {**cell.factors, "strategy": cell.strategy}
    return selectable(cell.workload, cell.framework, factors, cell.options)
