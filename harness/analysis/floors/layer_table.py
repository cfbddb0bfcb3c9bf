"""Lay out how long layers took alone, beside the least that this machine needed for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.floors.kept_floors import MachineFloors, computed_by
from harness.analysis.floors.layer_times import (
    LayerKey,
    LayerTime,
    layer_times,
    memory_floor_s,
)
from harness.analysis.floors.run_floors import LayerFloor
from harness.analysis.results import Results
from harness.worker.network.alone import BOTH, alone_sites
from harness.worker.network.workload import Training


@dataclass(frozen=True)
class LayerRow:
    """One layer and pass, in everything that it was timed in."""

    key: LayerKey
    layer: str
    alike: int
    """How many layers of the network have its shape."""
    times: Mapping[str, LayerTime]
    """By what computed it."""
    floor: LayerFloor
    memory_floor_s: float | None
    macs: int
    bytes: int

    @property
    def weight_s(self) -> float:
        """Give what all layers of this shape need at least."""
        return self.alike * self.floor.seconds

    def share(self, by: str) -> float | None:
        """Give the floor over what one needs: 1 is as quick as anything was."""
        found = self.times.get(by)
        return None if found is None else self.floor.seconds / found.seconds

    @property
    def is_below_memory(self) -> bool:
        """Tell whether it was quicker than memory allows, in its slowest trial even."""
        return self.memory_floor_s is not None and self.floor.high < self.memory_floor_s


@dataclass(frozen=True)
class LayerSum:
    """What one adds up to, over all layers that it was timed in."""

    by: str
    seconds: float
    floor_s: float
    """Of the same layers."""
    layers: int
    of: int
    """All layers of the network that could be timed alone."""
    step_s: float | None
    """Its whole step, where that was timed beside them."""

    @property
    def share(self) -> float:
        """Give the floor's part of what it needs."""
        return self.floor_s / self.seconds


def rows(
    results: Results, training: Training, floors: MachineFloors, cache_bytes: int
) -> list[LayerRow]:
    """Give a row for each layer and pass, the heaviest first."""
    alike: dict[str, int] = {}
    for one in alone_sites(training.network):
        alike[one.shape] = alike.get(one.shape, 0) + 1
    found: dict[LayerKey, dict[str, LayerTime]] = {}
    for time in layer_times(results):
        found.setdefault(time.key, {})[computed_by(time)] = time
    told = []
    for key, times in found.items():
        floor, first = floors.of(key), next(iter(times.values()))
        assert floor is not None, "what was measured was kept"
        least_s = memory_floor_s(first.bytes, floors.memory_bytes_per_s, cache_bytes)
        row = LayerRow(
            key, first.layer, alike[key.shape], times, floor, least_s, first.macs, first.bytes
        )
        told.append(row)
    return sorted(told, key=lambda one: -one.weight_s)


def sums(told: Sequence[LayerRow], results: Results, training: Training) -> list[LayerSum]:
    """Add up forward and backward of all layers, for each that computed them."""
    whole = [one for one in told if one.key.passes == BOTH]
    there = sum(1 for one in alone_sites(training.network) if BOTH in one.passes)
    found = []
    for by in dict.fromkeys(name for one in whole for name in one.times):
        own = [one for one in whole if by in one.times]
        found.append(
            LayerSum(
                by=by,
                seconds=sum(one.alike * one.times[by].seconds for one in own),
                floor_s=sum(one.weight_s for one in own),
                layers=sum(one.alike for one in own),
                of=there,
                step_s=_step_s(results, training, by, own[0].times[by]),
            )
        )
    return found


def _step_s(results: Results, training: Training, by: str, like: LayerTime) -> float | None:
    for cell in results.cells:
        is_step = cell.workload == training.name and cell.rate is not None
        same = ("framework", "factors")
        if is_step and all(getattr(cell, one) == getattr(like.cell, one) for one in same):
            assert cell.rate is not None
            return cell.work_per_step / cell.rate.value
    return None
