"""Choose the cells whose untimed jobs measure what the machine can do at most.

One cell of each framework's environment, device, precision and number of threads is enough: what
kernels reach then is the same for all others.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness import plugins
from harness.plan.cell import Cell
from harness.study.framework import framework_info
from harness.worker.network.precisions import precision_of

Kind = tuple[object, ...]


def ceiling_kind(cell: Cell) -> Kind | None:
    """Say what the ceilings of a cell are of; None where its job could measure none."""
    is_trained = plugins.workload(cell.workload, cell.factors).kind == "train"
    if (
        not is_trained
        or cell.scale.devices > 1
        or "ceiling" not in framework_info(cell.adapter).kinds
    ):
        return None
    factors = cell.factors
    products = precision_of(factors["precision"]).products
    return cell.environment, factors["device"], products, factors["threads"]


def ceiling_cells(cells: Iterable[Cell]) -> set[str]:
    """Give the keys of the first cells of each kind."""
    first: dict[Kind, str] = {}
    for cell in cells:
        kind = ceiling_kind(cell)
        if kind is not None:
            first.setdefault(kind, cell.key)
    return set(first.values())
