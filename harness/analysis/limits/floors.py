"""Say what each layer and pass needs at least at what a machine was measured to do at most.

A layer's pass takes at least as long as its multiplications at the highest rate that any kernel
reached in the cell's precision, and at least as long as its tensors take through the memory, where
they do not fit into the last-level cache; the longer of the two is its floor. No kernel reaches the
highest rate with every shape: where that layer was timed alone, the quickest that it was there is
the floor of what computes. Forward, a layer
reads its input and weights and writes its output; backward, it reads its weights and its output's
gradient, and its input once more, and writes the gradients of its input and weights. An update
reads weights, gradients and what the optimiser keeps, and writes all but the gradients, in the type
that they are held in.
What is computed again for the gradients goes forward twice. Of several devices, each takes its part
of the batch through the whole network: its floor is the step's. They may share a memory, and need
more then; no floor says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness import plugins
from harness.analysis.explain.step_shares import Key
from harness.analysis.floors.kept_floors import MachineFloors
from harness.analysis.floors.layer_times import TRIAD_MOVES, has_whole_devices
from harness.errors import BakeoffError
from harness.store.record_readers.ceilings import COMPUTE, MEMORY, Ceiling
from harness.verdicts.credibility.plausible import OPERATIONS_PER_MAC
from harness.verdicts.results import CellResult
from harness.worker.network.blocks import computed_again
from harness.worker.network.layer_rules import RULES
from harness.worker.network.layers import Conv
from harness.worker.network.precisions import precision_of
from harness.worker.network.rule import product
from harness.worker.network.shapes import count, macs_of_passes, parameter_shapes, sites
from harness.worker.network.workload import MOMENTS, Training

COMPUTING, MOVING = "computing", "memory"
_CONVOLUTION = "convolution"


@dataclass(frozen=True)
class Roof:
    """The highest of a machine's ceilings that hold for a cell; None where nobody measured it."""

    compute: Ceiling | None
    memory: Ceiling | None

    @property
    def is_whole(self) -> bool:
        """Whether what memory holds back can be told, too: with no cache's size nothing can."""
        return self.memory is not None and self.memory.reached.cache_bytes is not None


@dataclass(frozen=True)
class Floor:
    """What one layer's pass needs at least, and what of."""

    seconds: float
    by: str
    """computing or memory."""
    alone_s: float | None = None
    """What its layer needed at least where it was timed alone; None: that was not."""

    def held_to(self, took_s: float) -> float:
        """Give what a pass needs that took so long: its own step may have beaten its layer alone.

        What moves data may have been fused with another layer and then moves none. Multiplications
        were made, whatever layer their time is counted to.
        """
        if self.by == MOVING:
            return min(self.seconds, took_s)
        return max(self.seconds, min(self.alone_s or 0.0, took_s))


def roof_of(cell: CellResult, ceilings: Sequence[Ceiling]) -> Roof:
    """Choose the highest ceilings of a cell's device, precision and number of threads.

    What a convolution reached is no ceiling of a network without any: some are computed with fewer
    multiplications than are counted, which a product never is.
    """
    workload = training_of(cell)
    convolves = workload is None or any(
        isinstance(site.layer, Conv) for site in sites(workload.network)
    )

    def highest(unit: str, precision: str | None) -> Ceiling | None:
        found = [
            one
            for one in ceilings
            if one.reached.unit == unit
            and (convolves or one.reached.kernel != _CONVOLUTION)
            and one.under.device == cell.factors.get("device")
            and one.under.threads == cell.factors.get("threads")
            and precision in (None, one.under.precision)
        ]
        return max(found, key=lambda one: one.reached.per_s, default=None)

    products = precision_of(cell.factors.get("precision")).products
    return Roof(highest(COMPUTE, products), highest(MEMORY, None))


def floors(cell: CellResult, roof: Roof, alone: MachineFloors | None = None) -> Mapping[Key, Floor]:
    """Give the floor of each layer's passes and of the update; empty where none is known."""
    workload = training_of(cell)
    if workload is None or roof.compute is None or not has_whole_devices(cell):
        return {}
    batch, flops = cell.scale.batch_per_device, roof.compute.reached.per_s
    precision = precision_of(cell.factors.get("precision"))
    element = precision.activation_bytes
    macs = macs_of_passes(workload.network)
    is_twice = cell.factors.get("recompute") is True
    again = computed_again(workload.network, in_order=False) if is_twice else frozenset()
    found: dict[Key, Floor] = {}
    for site in sites(workload.network):
        held = sum(product(shape) for _, shape in parameter_shapes(site)) * element
        read = product(site.input) * batch * element
        written = product(site.output) * batch * element if RULES[type(site.layer)].writes else 0
        forward, backward = macs[site.path]
        moved = read + written + held if written else 0
        times = 2 if site.path in again else 1
        for phase, multiplied, bytes_moved in (
            ("forward", times * forward, times * moved),
            ("backward", backward, moved + read + held if written else 0),  # and two gradients
        ):
            computing_s = OPERATIONS_PER_MAC * multiplied * batch / flops
            floor = _longer(computing_s, _memory_s(bytes_moved, roof))
            least = alone.of_part(cell, site.path, phase) if alone and multiplied else None
            if least is not None and floor.by == COMPUTING:
                again_s = least.seconds * (times if phase == "forward" else 1)
                floor = replace(floor, alone_s=max(floor.seconds, again_s))
            found[site.path, phase] = floor
    if cell.scale.devices == 1:  # several may divide it among them
        kept = len(MOMENTS[type(workload.optimiser)])
        moved = (3 + 2 * kept) * precision.held_bytes * workload.parameters
        found["", "update"] = _longer(0.0, _memory_s(moved, roof))
    return found


def _longer(computing_s: float, memory_s: float) -> Floor:
    if memory_s > computing_s:
        return Floor(memory_s, MOVING)
    return Floor(computing_s, COMPUTING)


def _memory_s(moved: float, roof: Roof) -> float:
    """Give how long bytes take through the memory; none that may stay in the cache go there."""
    if roof.memory is None or moved <= (roof.memory.reached.cache_bytes or float("inf")):
        return 0.0
    return moved / moved_per_s(roof.memory)


def moved_per_s(memory: Ceiling) -> float:
    """Give the bytes that a triad moved, also those that a CPU reads before it overwrites them."""
    return memory.reached.per_s * (1.0 if memory.under.device == "gpu" else TRIAD_MOVES)


def training_of(cell: CellResult) -> Training | None:
    """Find the network that a cell trained; None where this one is another than the run's."""
    try:
        workload = plugins.workload(cell.workload, cell.factors)
    except BakeoffError:  # of another installation, or of a damaged run
        return None
    if not isinstance(workload, Training):
        return None
    counted = count(workload.network)
    is_same = (counted.parameters, counted.macs) == (cell.parameters, cell.macs)
    return workload if is_same else None
