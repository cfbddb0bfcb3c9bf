"""Place cells below the roof of their machine: operations per second over intensity.

The operations are those of ``derived``, of one device: a roof is one device's. The bytes are a
model, the least that training has to move from and to memory when nothing stays in a cache between
layers: each layer's output is written and read once forward, its gradient once backward; each
weight is read twice, its gradient written and read, and the optimiser reads and writes the weight's
state and writes the weight.

A profile states a device's ceilings, or was calibrated. Where it has none, those count that the run
measured for itself, in the cell's precision and with its threads; then a cell whose tensors fit
into the caches lies below no roof, as the model of bytes is not one of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from harness import plugins
from harness.analysis.context.closest_figure import devices
from harness.analysis.context.derived import derived
from harness.analysis.limits.floors import moved_per_s, roof_of
from harness.analysis.results import Results
from harness.errors import BakeoffError
from harness.store.record_readers.ceilings import COMPUTE, Ceiling
from harness.store.records import RunInfo
from harness.units import counted
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
    share: float
    """Of the roof above it."""
    run: str
    framework: str


_OUTPUT_MOVES = 4
_WEIGHT_MOVES = 7
_MEMORY = {"cpu": ("memory-",), "gpu": ("gpu-memory",)}


def roof(
    results: Results, measured: Sequence[Ceiling] = ()
) -> tuple[tuple[RoofCeiling, ...], tuple[RoofPoint, ...]]:
    """Give the ceilings that concern these cells, and where each cell lies."""
    runs = {run.name: run for run in results.runs}
    ceilings: dict[str, RoofCeiling] = {}
    points, called = [], results.names
    for cell in results.cells:
        run = runs.get(cell.run)
        if run is None or cell.refusal:
            continue
        roofs = {one.name: one for one in _ceilings(cell, run)}
        if not any(one.flops for one in roofs.values()):
            roofs = {one.name: one for one in _measured(cell, measured)}
        highest = max((one.flops for one in roofs.values() if one.flops), default=None)
        moved = [one.bytes_per_s for one in roofs.values() if one.bytes_per_s]
        figures, intensity = derived(cell, run), _intensity(cell)
        if highest is None or figures.flops is None or intensity is None:
            continue
        each = figures.flops / devices(cell)
        share = each / min(highest, max(moved) * intensity if moved else highest)
        name = f"{called[cell.run, cell.key]} ({share * 100:.0f} %)"
        points.append(RoofPoint(name, intensity, each, share, cell.run, cell.framework))
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


def _measured(cell: CellResult, measured: Sequence[Ceiling]) -> Iterator[RoofCeiling]:
    """Give the highest that the run's own kernels reached: in one rank, which a node may have."""
    is_gpu = cell.factors.get("device") == "gpu"
    if not is_gpu and cell.scale.devices_per_node > 1:
        return
    found, tensors = roof_of(cell, measured), _tensor_bytes(cell)
    cache_bytes = found.memory.reached.cache_bytes if found.memory else None
    if not is_gpu and (cache_bytes is None or tensors is None or sum(tensors) <= cache_bytes):
        return
    for one in filter(None, (found.compute, found.memory)):
        under, reached = one.under, one.reached
        threads = "" if under.threads is None else f", {counted(under.threads, 'thread')}"
        name = f"{under.framework} {reached.kernel}, {under.precision}{threads}"
        is_rate = reached.unit == COMPUTE
        flops, moved = (reached.per_s, None) if is_rate else (None, moved_per_s(one))
        yield RoofCeiling(name, flops, moved, "measured")


def _intensity(cell: CellResult) -> float | None:
    """Give operations per byte of one step."""
    tensors = _tensor_bytes(cell)
    if tensors is None or not cell.macs:
        return None
    outputs, weights = tensors
    moved = _OUTPUT_MOVES * outputs + _WEIGHT_MOVES * weights
    return float(OPERATIONS_PER_MAC * PASSES * cell.macs * cell.scale.batch_per_device / moved)


def _tensor_bytes(cell: CellResult) -> tuple[int, int] | None:
    """Count the bytes of all outputs of a batch, and those of all weights."""
    outputs = _activations(cell.workload, cell.factors.get("sequence"))
    if outputs is None or not cell.parameters:
        return None
    precision = precision_of(cell.factors.get("precision"))
    batch = cell.scale.batch_per_device
    return precision.activation_bytes * outputs * batch, precision.held_bytes * cell.parameters


@cache
def _activations(workload: str, sequence: int | None) -> int | None:
    """Count the elements of all outputs of a sample; None for a workload that is not here."""
    try:
        network = getattr(plugins.workload(workload, {"sequence": sequence}), "network", None)
    except BakeoffError:  # of another installation, or of a damaged run
        return None
    return None if network is None else count(network).activations
