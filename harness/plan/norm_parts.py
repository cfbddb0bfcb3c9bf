"""Say in how many parts batch norms see a step's batch: as one, or as many as share it."""

from __future__ import annotations

from harness.plan.cell import Cell
from harness.study.framework import framework_info
from harness.worker.network.shapes import sites, statistics
from harness.worker.network.workload import Training


def norm_parts(workload: Training, shares: int, *, sync_batch_norm: bool) -> int:
    """Count the parts of a batch that so many ranks and devices share."""
    has_norms = any(True for site in sites(workload.network) for _ in statistics(site))
    return shares if has_norms and not sync_batch_norm else 1


def norm_parts_of(workload: Training, cell: Cell) -> int:
    """Count the parts of a cell's batch, by what its strategy promises."""
    strategy = framework_info(cell.adapter).strategy(cell.strategy)
    return norm_parts(workload, cell.scale.devices, sync_batch_norm=strategy.sync_batch_norm)
