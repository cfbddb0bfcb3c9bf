"""Place cells below the roof of their machine: operations per second over intensity.

The operations are those of ``derived``, of one device: a roof is one device's. The bytes are a
model, the least that training has to move from and to memory when nothing stays in a cache between
layers: each layer's output is written and read once forward, its gradient once backward; each
weight is read twice, its gradient written and read, and the optimiser reads and writes the weight's
state and writes the weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from harness import plugins
from harness.analysis.context.closest_figure import devices
from harness.analysis.context.derived import derived
from harness.analysis.results import Results
from harness.errors import BakeoffError
from harness.store.records import RunInfo
from harness.verdicts.credibility.plausible import OPERATIONS_PER_MAC, PASSES
from harness.verdicts.results import CellResult
from harness.worker.network.precisions import precision_of
from harness.worker.network.shapes import count


@dataclass(frozen=True)
class RoofCeiling:
    """A limit of the machine, and whether it was measured or is declared."""

    name: str
    flops: float | None
    """Operations per second; None where the ceiling is a bandwidth."""
    bytes_per_s: float | None
    how: str


@dataclass(frozen=True)
class RoofPoint:
    """What one cell reached below the roof."""

    name: str
    intensity: float
    """Operations per byte."""
    flops: float
    """Operations per second of one device, as the ceilings are; on CPUs of one node."""
    run: str
    framework: str


_OUTPUT_MOVES = 4
_WEIGHT_MOVES = 7
_MEMORY = {"cpu": ("memory-",), "gpu": ("gpu-memory",)}


def roof(results: Results) -> tuple[tuple[RoofCeiling, ...], tuple[RoofPoint, ...]]:
    """Give the ceilings that concern these cells, and where each cell lies."""
    runs = {run.name: run for run in results.runs}
    ceilings: dict[str, RoofCeiling] = {}
    points, called = [], results.names
    for cell in results.cells:
        run = runs.get(cell.run)
        roofs = {} if run is None else {one.name: one for one in _ceilings(cell, run)}
        if run is None or cell.refusal or not any(one.flops for one in roofs.values()):
            continue
        figures, intensity = derived(cell, run), _intensity(cell)
        if figures.flops is None or intensity is None:
            continue
        share = (
            "" if figures.share_of_ceiling is None else f" ({figures.share_of_ceiling * 100:.0f} %)"
        )
        each = figures.flops / devices(cell)
        name = f"{called[cell.run, cell.key]}{share}"
        points.append(RoofPoint(name, intensity, each, cell.run, cell.framework))
        ceilings |= roofs
    return tuple(ceilings.values()), tuple(points)


def _ceilings(cell: CellResult, run: RunInfo) -> Iterator[RoofCeiling]:
    device = str(cell.factors.get("device") or "cpu")
    products = precision_of(cell.factors.get("precision")).products
    wanted = (f"{device}-{products}", *_MEMORY.get(device, ()))
    for name, ceiling in (run.platform.get("ceilings") or {}).items():
        flops, bandwidth = ceiling.get("compute"), ceiling.get("bandwidth")
        if name.startswith(wanted) and isinstance(flops or bandwidth, int | float):
            yield RoofCeiling(name, flops, bandwidth, str(ceiling.get("tag")))


def _intensity(cell: CellResult) -> float | None:
    """Give operations per byte of one step."""
    outputs = _activations(cell.workload, cell.factors.get("sequence"))
    batch = cell.scale.batch_per_device
    if outputs is None or not cell.macs or not cell.parameters:
        return None
    precision = precision_of(cell.factors.get("precision"))
    moved = _OUTPUT_MOVES * precision.activation_bytes * outputs * batch
    moved += _WEIGHT_MOVES * precision.held_bytes * cell.parameters
    return float(OPERATIONS_PER_MAC * PASSES * cell.macs * batch / moved)


@cache
def _activations(workload: str, sequence: int | None) -> int | None:
    """Count the elements of all outputs of a sample; None for a workload that is not here."""
    try:
        network = getattr(plugins.workload(workload, {"sequence": sequence}), "network", None)
    except BakeoffError:  # of another installation, or of a damaged run
        return None
    return None if network is None else count(network).activations
