"""Choose the cells whose untimed jobs measure what the machine can do at most.

One cell of each framework's environment, device, precision, number of threads, network and batch is
enough: what kernels and the network's layers reach then is the same for all others.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness import plugins
from harness.plan.cell import Cell
from harness.study.factors import FACTORS
from harness.study.framework import framework_info
from harness.worker.network.alone import multiplying
from harness.worker.network.precisions import precision_of
from harness.worker.network.workload import Training

Kind = tuple[object, ...]
_SLOWER = ("onednn", "layout", "deterministic", "accumulate", "interop_threads")
"""What may slow a kernel down: what a layer takes then is not what it needs."""


def ceiling_kind(cell: Cell) -> Kind | None:
    """Say what the ceilings of a cell are of; None where its job could measure none."""
    workload = plugins.workload(cell.workload, cell.factors)
    if (
        not isinstance(workload, Training)
        or cell.scale.devices > 1
        or "ceiling" not in framework_info(cell.adapter).kinds
    ):
        return None
    factors = cell.factors
    products = precision_of(factors["precision"]).products
    kernels = cell.environment, factors["device"], products, factors["threads"]
    if not times_layers(cell):
        return kernels
    return *kernels, factors["precision"], workload.network, cell.scale.batch_per_step


def times_layers(cell: Cell) -> bool:
    """Tell whether its job times layers alone: as its framework runs them by itself."""
    is_plain = all(cell.factors[name] == FACTORS[name].default for name in _SLOWER)
    return is_plain and "layer" in framework_info(cell.adapter).kinds


def ceiling_cells(cells: Iterable[Cell]) -> set[str]:
    """Give the keys of the first cells of each kind."""
    first: dict[Kind, str] = {}
    for cell in cells:
        kind = ceiling_kind(cell)
        if kind is not None:
            first.setdefault(kind, cell.key)
    return set(first.values())


def layer_words(cell: Cell) -> tuple[str, ...]:
    """Name what multiplies on each device of a cell as ceilings do, the heaviest first."""
    workload = plugins.workload(cell.workload, cell.factors)
    if not isinstance(workload, Training):
        return ()
    batch = cell.scale.batch_per_device
    return tuple(one.words for one in multiplying(workload.network, batch, cell.factors))
