"""Derive figures from a cell's rate: operations per second, work per price and hour.

A training step is counted as three forward passes (one forward, two backward), and a multiply-add
as two operations: FLOP/s = 2 x 3 x forward MACs per sample x samples per second. Each figure scales
with the rate, as its interval does. What cannot be true is marked, never printed bare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness import units
from harness.analysis.context.closest_figure import devices
from harness.errors import UsageError
from harness.store.records import RunInfo
from harness.verdicts.credibility.plausible import OPERATIONS_PER_MAC, PASSES, SAMPLES
from harness.verdicts.results import CellResult
from harness.worker.network.precisions import precision_of


@dataclass(frozen=True)
class Derived:
    """Figures derived from a cell's rate; None where the plan or platform states too little."""

    flops: float | None = None
    """Operations per second over all devices."""
    share_of_ceiling: float | None = None
    """Of what so many devices are claimed or measured to reach at this precision."""
    per_price: float | None = None
    """Work for one unit of the currency."""
    currency: str | None = None
    per_node_hour: float | None = None
    mark: str | None = None
    """Why a figure here cannot be taken as it stands."""


def derived(cell: CellResult, run: RunInfo) -> Derived:
    """Derive what the plan, the platform and the rate allow."""
    if cell.rate is None:
        return Derived()
    flops = None
    if cell.macs is not None and cell.unit in SAMPLES:
        macs_per_step = cell.macs * cell.scale.batch_per_step
        flops = OPERATIONS_PER_MAC * PASSES * macs_per_step * cell.rate.value / cell.work_per_step
    share, mark = _against_ceiling(cell, run, flops)
    price, currency = _price(run.platform)
    per_node_hour = cell.rate.value * 3600 / cell.scale.nodes if price is not None else None
    return Derived(
        flops=flops,
        share_of_ceiling=share,
        per_price=per_node_hour / price if per_node_hour is not None and price else None,
        currency=currency,
        per_node_hour=per_node_hour,
        mark=mark,
    )


def _against_ceiling(
    cell: CellResult, run: RunInfo, flops: float | None
) -> tuple[float | None, str | None]:
    products = precision_of(cell.factors.get("precision")).products
    name = f"{cell.factors.get('device', 'cpu')}-{products}"
    ceiling = (run.platform.get("ceilings") or {}).get(name) or {}
    each = _operations(ceiling.get("compute"))
    if flops is None or not each:
        return None, None
    share = flops / (each * devices(cell))
    if share <= 1:
        return share, None
    return share, (
        f"{share * 100:.0f} % of the {ceiling.get('tag')} ceiling {name} cannot be: "
        "the ceiling, the precision or the count of operations is wrong"
    )


def _operations(value: Any) -> float | None:
    """Read a ceiling as a plan stores it, or as a file states it."""
    if isinstance(value, str):
        try:
            return units.flops(value)
        except (ValueError, UsageError):
            return None
    return float(value) if value is not None else None


def _price(platform: Mapping[str, Any]) -> tuple[float | None, str | None]:
    """Split "3.06 USD" into amount and currency."""
    amount, _, currency = str(platform.get("price_per_node_hour") or "").partition(" ")
    return (float(amount), currency.strip()) if currency else (None, None)


def work_per_joule(cell: CellResult) -> float | None:
    """Divide the rate by the mean power of the steady window; None where power is unknown."""
    power = cell.utilisation.get("power_w")
    return cell.rate.value / power if cell.rate and power else None
