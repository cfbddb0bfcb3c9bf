"""Split a cell's power by the part of the machine that was metered."""

from __future__ import annotations

from dataclasses import dataclass

from harness.verdicts.results import CellResult, Estimate, scaled


@dataclass(frozen=True)
class EnergyUse:
    """What one cell draws in its steady window, and what it gets done with that."""

    name: str
    parts_w: tuple[tuple[str, float], ...]
    """Mean power by part: GPU, CPU package, memory; only what was read."""
    work_per_joule: Estimate
    source: str
    """Which meter, and what it covers and averages over."""


_METERS = {
    "power, from its energy counter": "NVML's energy counter",
    "power, 1 s average": "NVML, averages over a second",
    "power": "RAPL energy counters",
}


def energy(cell: CellResult, name: str) -> EnergyUse | None:
    """Split a cell's power by part; None where nothing was metered."""
    total = cell.utilisation.get("power_w")
    if total is None or cell.rate is None:
        return None
    parts: dict[str, float] = {}
    meters: dict[str, None] = {}
    metered = [one for one in cell.readings if one.unit == "W" and one.name in _METERS]
    for reading in metered:
        part = _part(reading.scope)
        better = reading.name != "power, 1 s average" or not any(
            one.scope == reading.scope and one.name == "power, from its energy counter"
            for one in metered
        )
        if part is not None and better:
            parts[part] = parts.get(part, 0.0) + reading.mean
            meters[_METERS[reading.name]] = None
    interval = cell.rate.interval
    if interval is not None:
        interval = scaled(interval, 1 / total)
    unit = f"{cell.unit} per joule"
    work = Estimate(cell.rate.value / total, unit, cell.rate.n, interval)
    source = f"{', '.join(meters)}; nothing else in the machine is in it."
    return EnergyUse(name, tuple(parts.items()), work, source)


def _part(scope: str) -> str | None:
    """Name what a meter covers; None for a part of what another one covers already."""
    if scope.startswith("gpu:"):
        return "GPU"
    domain = scope.rpartition("/")[2]
    if domain.startswith("package"):
        return "CPU package"
    return "memory" if domain == "dram" else None
