"""Say once what the intervals of several cells' rates are."""

from __future__ import annotations

from collections.abc import Iterable

from harness.analysis import numbers
from harness.analysis.blocks.compare_cells import BROUGHT
from harness.verdicts.results import CellResult

MOVED = "rates are moved so that they have the ratios measured within blocks"
_NONE = "too few trials for an interval"


def is_brought(cell: CellResult) -> bool:
    """Whether a rate was brought to the reference's blocks, so that it may lie beside its dots."""
    interval = cell.rate.interval if cell.rate else None
    return interval is not None and interval.meaning.endswith(BROUGHT)


def in_words(cells: Iterable[CellResult]) -> str:
    """Name each kind of interval with its level, and say whether rates were moved."""
    cells = [cell for cell in cells if cell.rate]
    kinds = "; ".join(dict.fromkeys(map(_kind, cells)))
    return f"{kinds}; {MOVED}" if any(map(is_brought, cells)) else kinds


def _kind(cell: CellResult) -> str:
    interval = cell.rate.interval if cell.rate else None
    if interval is None:
        return _NONE
    return f"{interval.meaning.removesuffix(BROUGHT)}, {numbers.number(100 * interval.level)} %"
