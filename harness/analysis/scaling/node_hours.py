"""Give what a cell takes of a machine: its nodes times how long they are busy."""

from __future__ import annotations

from harness.verdicts.results import CellResult


def per_epoch(cell: CellResult) -> float | None:
    """Give the node-hours of one pass over the data set; None where it has no known size."""
    return cell.scale.nodes * cell.epoch_s.value / 3600 if cell.epoch_s else None


def per_million(cell: CellResult) -> float | None:
    """Give the node-hours of a million units of work."""
    rate = cell.rate
    return cell.scale.nodes * 1e6 / rate.value / 3600 if rate and rate.value else None
