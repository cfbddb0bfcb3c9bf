"""Keep the least time that anything took on this machine for a layer, shape by shape.

``STATE/floors/`` has one small file for each machine, platform and number of its CPUs: for each
layer, pass, batch, precision, device and number of threads the quickest cell so far, with what
computed it, and beside them the memory's rate. Only what was measured is kept; a quicker cell
replaces a slower one.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, TypeGuard

from harness import user_folders
from harness.analysis.floors.layer_times import (
    BACKWARD,
    LayerKey,
    LayerTime,
    keys_of_network,
    keys_of_products,
    layer_times,
    memory_rate,
)
from harness.analysis.floors.run_floors import LayerFloor, layers_of
from harness.analysis.results import Results
from harness.errors import RunError
from harness.machine import share
from harness.store.files import write_json
from harness.store.json_text import parse
from harness.store.record_readers.ceilings import Ceiling
from harness.verdicts.results import CellResult
from harness.worker.network.alone import FORWARD

_VERSION = 2  # 1: first; 2: of so many threads
_MOST_BYTES = 1 << 24


@dataclass(frozen=True)
class MachineFloors:
    """What is kept of one machine."""

    layers: Mapping[str, LayerFloor] = field(default_factory=dict)
    """By the words of their keys."""
    memory_bytes_per_s: float | None = None

    def of(self, key: LayerKey) -> LayerFloor | None:
        """Give the floor of a layer and pass."""
        return self.layers.get(key.words)

    def of_part(self, cell: CellResult, site: str, phase: str) -> LayerFloor | None:
        """Give the floor of a layer of a cell's network in one phase of its step."""
        if not self.layers or phase not in (FORWARD, BACKWARD):
            return None
        key = keys_of_network(cell).get((site, phase))
        return None if key is None else self.of(key)

    def of_products(self, cell: CellResult) -> float | None:
        """Give the seconds of all that multiplies in a cell's step; None if one is not kept."""
        kept = [self.of(key) for key in keys_of_products(cell)]
        known = [one.seconds for one in kept if one is not None]
        return sum(known) if known and len(known) == len(kept) else None


def kept_floors(platform: Mapping[str, Any]) -> MachineFloors:
    """Read what is kept of this machine, as a run's platform has it; nothing if that is damaged."""
    try:
        content = parse(_file(platform).read_bytes()[:_MOST_BYTES])
    except (OSError, ValueError):  # less is known then
        return MachineFloors()
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        return MachineFloors()
    told = content.get("layers")
    found = {key: _floor(one) for key, one in told.items()} if isinstance(told, dict) else {}
    rate = content.get("memory_bytes_per_s")
    return MachineFloors(
        {key: one for key, one in found.items() if one is not None},
        rate if _is_positive(rate) else None,
    )


def floors_of(results: Results, ceilings: Sequence[Ceiling]) -> MachineFloors:
    """Give the floors that a run knows, and those of its machine, if it is this one."""
    if len(results.runs) != 1 or results.runs[0].is_simulated:
        return MachineFloors()
    own = layers_of(ceilings)
    nodes = {node for cell in results.cells for trial in cell.trials for node in trial.nodes}
    if nodes != {socket.gethostname()}:
        return MachineFloors(own)
    kept = kept_floors(results.runs[0].platform)
    layers = dict(kept.layers)
    for words, one in own.items():
        if words not in layers or one.seconds < layers[words].seconds:
            layers[words] = one
    return replace(kept, layers=layers)


def keep(results: Results) -> MachineFloors:
    """Keep what a run of layers was quicker in than anything before; give all that is kept."""
    (run,) = results.runs
    before = kept_floors(run.platform)
    layers = dict(before.layers)
    for time in layer_times(results):
        known = layers.get(time.key.words)
        if known is None or time.seconds < known.seconds:
            environment = run.environments.get(time.cell.framework) or {}
            layers[time.key.words] = LayerFloor(
                seconds=time.seconds,
                low=time.low,
                high=time.high,
                trials=time.trials,
                disturbed=time.disturbed,
                by=computed_by(time),
                environment=str(environment.get("fingerprint") or ""),
                layer=time.layer,
                run=run.name,
                wall_ns=run.started_wall_ns,
            )
    rates = [one for one in (before.memory_bytes_per_s, memory_rate(results)) if one is not None]
    now = MachineFloors(layers, max(rates, default=None))
    if now != before:
        file = _file(run.platform)
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_json(file, {"version": _VERSION, **asdict(now)})
        except OSError as fault:
            raise RunError(
                f"{file}: what was measured cannot be kept ({fault.strerror})."
            ) from fault
    return now


def computed_by(time: LayerTime) -> str:
    """Name what computed a layer: the framework with its version, and its settings."""
    cell = time.cell
    name = cell.framework.partition("@")[0]
    version = cell.versions.get(name)
    settings = [str(cell.factors.get("layout") or "")]
    settings += ["compiled"] if cell.factors.get("compile") else []
    return " · ".join(filter(None, (f"{cell.framework} {version or ''}".strip(), *settings)))


def _floor(told: Any) -> LayerFloor | None:
    """Read one floor; the file is the user's own, and may be damaged."""
    with suppress(TypeError):
        found = LayerFloor(**told)
        if _is_positive(found.seconds) and isinstance(found.high, int | float):
            return found
    return None


def _is_positive(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and isfinite(value) and value > 0


def _file(platform: Mapping[str, Any]) -> Path:
    # The CPUs are those that the run had: who reads it may have been given fewer.
    cpus = (platform.get("node") or {}).get("cpus")
    here = [socket.gethostname(), share.cpu(), os.cpu_count(), cpus, platform.get("name")]
    name = hashlib.sha256(json.dumps(here).encode()).hexdigest()[:12]
    return user_folders.state_home() / "floors" / f"{name}.json"
