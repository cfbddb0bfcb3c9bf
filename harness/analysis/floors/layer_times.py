"""Read from a run's results how long each layer took alone, and what the memory gave at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from harness import plugins
from harness.analysis.results import Results
from harness.errors import BakeoffError
from harness.store.outcome import Ended
from harness.verdicts.results import CellResult
from harness.worker.network.alone import (
    BOTH,
    FORWARD,
    alone_sites,
    bytes_of,
    least_words,
    macs_of,
)
from harness.worker.network.precisions import precision_of
from harness.worker.network.shapes import macs_of_passes
from harness.worker.network.workload import LayerAlone, Training

BACKWARD = "backward"
"""What forward and backward take together, less forward alone."""
TRIAD_MOVES = 4 / 3
"""A line that is written is read before: the triad counts three arrays, and moves four."""


@dataclass(frozen=True)
class LayerKey:
    """What decides how long a layer takes on a machine, whatever computes it."""

    shape: str
    passes: str
    batch: int
    precision: str
    device: str
    threads: int | None
    """None on a GPU, and where a cell takes as many as it is given."""

    @property
    def words(self) -> str:
        """Write it as one line."""
        return least_words(
            self.shape, self.passes, self.batch, self.precision, self.device, self.threads
        )


@dataclass(frozen=True)
class LayerTime:
    """How long one cell took for one layer and pass."""

    key: LayerKey
    layer: str
    """Its network and path."""
    cell: CellResult
    seconds: float
    low: float
    high: float
    """The quickest and the slowest trial."""
    trials: int
    disturbed: bool
    """Whether something disturbed every trial: then the quickest counts, and it may be quicker."""
    macs: int
    """Multiplications of the batch."""
    bytes: int
    """Of what it is given and what it gives."""


def layer_times(results: Results) -> Iterator[LayerTime]:
    """Give each layer and pass that was timed, and the backward pass where both others were."""
    found: dict[tuple[Any, ...], LayerTime] = {}
    for cell in results.cells:
        time = _layer_time(cell)
        if time is not None:
            found[(*_how(cell), time.layer, time.key.passes)] = time
            yield time
    for (*how, passes), both in found.items():
        forward = found.get((*how, FORWARD))
        if passes == BOTH and forward is not None and both.seconds > forward.seconds:
            yield _backward(both, forward)


def memory_rate(results: Results) -> float | None:
    """Give the bytes per second that memory moved in a triad, if one was measured on CPUs."""
    rates = [
        cell.rate.value
        for cell in results.cells
        if cell.workload == "triad" and cell.rate and cell.factors.get("device") != "gpu"
    ]
    return max(rates) * TRIAD_MOVES if rates else None


def has_whole_devices(cell: CellResult) -> bool:
    """Tell whether each of a cell's devices has as much as one alone had.

    Ranks of one node that take as many threads as they find, and devices of one process, share the
    cores.
    """
    if cell.scale.devices_per_node == 1 or cell.factors.get("device") == "gpu":
        return True
    return cell.factors.get("threads") is not None and cell.scale.devices_per_rank == 1


def keys_of_network(cell: CellResult) -> Mapping[tuple[str, str], LayerKey]:
    """Give the key of each layer and pass on a device of a cell that trains a network."""
    training = _network(cell)
    if training is None or not has_whole_devices(cell):
        return {}
    return {
        (one.site.path, passes): _key(one.shape, passes, cell)
        for one in alone_sites(training.network)
        for passes in (*one.passes, *([BACKWARD] if BOTH in one.passes else []))
    }


def keys_of_products(cell: CellResult) -> Sequence[LayerKey]:
    """Give the keys of both passes of each layer of a cell's network that multiplies."""
    training = _network(cell)
    if training is None:
        return ()
    multiplied = macs_of_passes(training.network)
    return [
        key
        for (path, passes), key in keys_of_network(cell).items()
        if passes != BOTH and any(multiplied.get(path, ()))
    ]


def memory_floor_s(
    moved_bytes: int, memory_bytes_per_s: float | None, cache_bytes: int
) -> float | None:
    """Give the seconds that memory needs at least for what no cache can keep between two steps."""
    if memory_bytes_per_s is None:
        return None
    return max(0, moved_bytes - cache_bytes) / memory_bytes_per_s


def _network(cell: CellResult) -> Training | None:
    try:
        found = plugins.workload(cell.workload, cell.factors)
    except BakeoffError:  # of another installation
        return None
    return found if isinstance(found, Training) else None


def _layer_time(cell: CellResult) -> LayerTime | None:
    try:
        alone = plugins.workload(cell.workload, cell.factors)
    except BakeoffError:  # of another installation
        return None
    whole = [one for one in cell.trials if one.outcome == Ended.OK and one.rate]
    quiet = [one.rate for one in whole if one.counted and one.rate]
    rates = quiet or [one.rate for one in whole if one.rate]
    if not isinstance(alone, LayerAlone) or not rates or cell.refusal:
        return None
    batch = cell.scale.batch_per_step
    network = cell.workload.partition("/")[0]
    (one,) = alone_sites(alone.training.network)
    shape = one._replace(to_input=alone.to_input).shape
    precision = precision_of(cell.factors.get("precision"))
    return LayerTime(
        key=_key(shape, alone.passes, cell),
        layer=f"{network}/{alone.path}",
        cell=cell,
        seconds=batch / (geometric_mean(quiet) if quiet else max(rates)),
        low=batch / max(rates),
        high=batch / min(rates),
        trials=len(rates),
        disturbed=not quiet,
        macs=macs_of(alone) * batch,
        bytes=bytes_of(alone, batch, precision),
    )


def _key(shape: str, passes: str, cell: CellResult) -> LayerKey:
    device = str(cell.factors.get("device") or "cpu")
    return LayerKey(
        shape,
        passes,
        cell.scale.batch_per_device,
        str(cell.factors.get("precision")),
        device,
        cell.factors.get("threads") if device == "cpu" else None,
    )


def _how(cell: CellResult) -> tuple[Any, ...]:
    """Give what is the same of one layer's passes in one framework, however it was set."""
    return (cell.run, cell.framework, *sorted((k, str(v)) for k, v in cell.factors.items()))


def _backward(both: LayerTime, forward: LayerTime) -> LayerTime:
    key = LayerKey(**{**vars(both.key), "passes": BACKWARD})
    return LayerTime(
        key=key,
        layer=both.layer,
        cell=both.cell,
        seconds=both.seconds - forward.seconds,
        low=max(both.low - forward.high, 0.0),
        high=both.high - forward.low,
        trials=min(both.trials, forward.trials),
        disturbed=both.disturbed or forward.disturbed,
        macs=both.macs - forward.macs,
        bytes=both.bytes - forward.bytes,
    )
