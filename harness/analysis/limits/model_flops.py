"""Count what training a token takes by the conventions that utilisation is published in.

All count two operations a multiplication and three passes. They differ in attention, and in what
is computed twice:

- *full*: queries meet all keys, those that a mask hides too (PaLM's 6 N + 12 L d T a token;
  nanoGPT, torchtitan),
- *causal*: queries meet the keys that they may see (MaxText, Megatron, NeMo),
- *hardware*: what the step as timed multiplies, forward passes that are repeated included.

A share is of the highest rate that a kernel reached on this machine in the cell's precision, never
of a figure that a maker states; where nobody measured one there is none. Where each layer that
multiplies was timed alone here (``bakeoff layers``), there is a share of what these reach, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.floors.kept_floors import MachineFloors
from harness.analysis.limits.floors import roof_of, training_of
from harness.store.record_readers.ceilings import Ceiling
from harness.verdicts.credibility.plausible import OPERATIONS_PER_MAC, PASSES
from harness.verdicts.results import CellResult, Estimate, scaled
from harness.worker.network.layers import Network
from harness.worker.network.sequence_layers import Attention
from harness.worker.network.shapes import count, sites, vocabulary


@dataclass(frozen=True)
class ModelFlops:
    """What a cell computes in a second, by three conventions; None where it is not known."""

    tokens: Estimate
    """A second, over all devices."""
    full: float
    causal: float
    hardware: float | None
    roof: float | None
    """What all its devices reach at most, as a kernel was measured."""
    alone: float | None
    """What its own layers reach where each has the machine to itself; None if that is not kept."""

    def share(self, flops: float | None) -> float | None:
        """Give a rate of operations as a share of the roof."""
        return None if flops is None or self.roof is None else flops / self.roof


def model_flops(
    cell: CellResult, ceilings: Sequence[Ceiling], floors: MachineFloors | None = None
) -> ModelFlops | None:
    """Count what a cell computes; None of a network that is fed no tokens."""
    workload = training_of(cell)
    if workload is None or cell.rate is None or vocabulary(workload.network) is None:
        return None
    (length,) = workload.network.input
    rate = cell.rate.value * cell.scale.batch_per_step / cell.work_per_step  # samples
    each = OPERATIONS_PER_MAC * PASSES * rate
    full = each * count(workload.network).macs
    roof = roof_of(cell, ceilings).compute
    products_s = None if floors is None else floors.of_products(cell)
    steps_per_s = rate / cell.scale.batch_per_step
    return ModelFlops(
        tokens=_times(cell.rate, length * cell.scale.batch_per_step / cell.work_per_step),
        full=full,
        causal=each * causal_macs(workload.network),
        hardware=_multiplied(cell, rate),
        roof=None if roof is None else roof.reached.per_s * cell.scale.devices,
        alone=None if products_s is None else full / (steps_per_s * products_s),
    )


def _times(rate: Estimate, length: float) -> Estimate:
    within = rate.interval and scaled(rate.interval, length)
    return Estimate(rate.value * length, "tokens/s", rate.n, within)


def causal_macs(network: Network) -> int:
    """Count a sample's multiplications without those of queries and keys that a mask hides."""
    hidden = 0
    for site in sites(network):
        if isinstance(site.layer, Attention) and site.layer.causal:
            length, features = site.output
            hidden += length * (length - 1) * features  # half of the places, in two products
    return count(network).macs - hidden


def _multiplied(cell: CellResult, rate: float) -> float | None:
    """Give the operations a second of what the step was found to multiply."""
    for trial in cell.trials:
        told = trial.facts.get("multiplications") or {}
        if trial.counted and isinstance(told.get("counted"), int):
            steps_per_s = rate / cell.scale.batch_per_step
            return float(OPERATIONS_PER_MAC * told["counted"] * steps_per_s * cell.scale.ranks)
    return None
