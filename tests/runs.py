"""Write genuine run directories with known truth, so that readers can be tested.

``write_run(folder, cells)`` fills a directory exactly as a session would: plan, provenance, one
outcome and one event stream per rank and trial. Step times come from a seeded random generator
after a ``Behaviour``, so every figure a reader computes has a right answer.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import Any

from harness.store.layout import RunPaths, TrialName
from harness.store.outcome import Ended, Outcome, RankEnd, write_outcome
from harness.store.paths.run_format import VERSION
from harness.worker import events as event_format
from harness.worker.job import Job, Span
from harness.worker.job import text as job_text
from harness.worker.scale import FACTORS as OF_SCALE
from harness.worker.scale import Scale

FACTORS: Mapping[str, Any] = {
    "strategy": "none",
    "nodes": 1,
    "ranks_per_node": 1,
    "devices_per_rank": 1,
    "device": "cpu",
    "batch": 16,
    "global_batch": None,
    "precision": "fp32",
    "compile": False,
    "layout": "channels-last",
    "threads": 2,
    "deterministic": False,
    "compile_cache": "warm",
    "input": "synthetic",
}
START_NS = 1_790_000_000_000_000_000
FIRST_WORD_NS = 1_000_000_000


@dataclass(frozen=True)
class Behaviour:
    """How long the steps of a cell's trials take, and what disturbs them."""

    step_s: float = 0.02
    """True duration of one step in the steady state."""
    trial_noise: float = 0.01
    """Spread (of the logarithm) between trials."""
    window_noise: float = 0.01
    """Spread (of the logarithm) between windows of one trial."""
    windows: int = 60
    steps_per_window: int = 1
    warmup: int = 5
    """Windows of the warm-up phase."""
    first_factor: float = 50.0
    """How much longer the very first step takes (compilation, autotuning)."""
    slow_windows: int = 0
    """Measured windows that are still slow: a warm-up that outlasts the fixed rule."""
    slow_factor: float = 1.5
    outlier_every: int = 0
    outlier_factor: float = 4.0
    drift: float = 0.0
    """Relative change of the step time from the first to the last measured window."""
    period: int = 0
    period_amplitude: float = 0.0
    """A square wave over the windows: a throttling clock, a neighbour's cron job."""
    stall_at: int | None = None
    """The window that takes as long as two hundred."""


@dataclass(frozen=True)
class RecordedCell:
    """One cell of a recorded run."""

    workload: str = "tinycnn"
    framework: str = "torch"
    environment: str = "torch-cpu"
    factors: Mapping[str, Any] = field(default_factory=dict)
    behaviour: Behaviour = field(default_factory=Behaviour)
    behaviours: Mapping[int, Behaviour] = field(default_factory=dict)
    """Block -> how its trial behaved, where it is another way."""
    unit: str = "images"
    parameters: int | None = 34_000
    macs: int | None = 9_000_000
    epoch_samples: int | None = 50_000
    outcomes: Mapping[int, str] = field(default_factory=dict)
    """Block -> outcome, where it is not ``ok``."""
    gate: str | None = None
    start_s: float | None = None
    """How long its first rank took to say its first word; each further one 0.1 s longer."""

    @property
    def resolved(self) -> dict[str, Any]:
        """Every factor with its value."""
        return {**FACTORS, **self.factors}

    @property
    def key(self) -> str:
        """A stable key of what the cell is."""
        identity = [self.workload, self.framework, sorted(self.factors.items())]
        return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        """What a person calls the cell."""
        changed = [f"{name}={value}" for name, value in self.factors.items()]
        return " · ".join([self.workload, self.framework, *changed])

    @property
    def scale(self) -> Scale:
        """How many share a step."""
        return Scale.of(self.resolved)


@dataclass(frozen=True)
class Recording:
    """What is said about the run as a whole."""

    name: str = "recorded-2026-11-21"
    title: str = "A recorded run"
    question: str = "Which framework is faster?"
    trials: int = 6
    seed: int = 1
    block_noise: float = 0.02
    """Spread of what a block has in common: slow changes of the machine."""
    origin: str = "measured"
    fingerprint: str = "f1"
    platform: Mapping[str, Any] = field(
        default_factory=lambda: {"name": "laptop", "title": "A laptop", "hardware": {"cpus": 2}}
    )
    versions: Mapping[str, str] = field(default_factory=lambda: {"torch": "2.13.0"})
    reference: str | None = "first"
    """``first`` takes each workload's first cell, None declares none."""
    holes: tuple[Mapping[str, Any], ...] = ()
    marks: tuple[str, ...] = ()
    measure: Mapping[str, Any] = field(
        default_factory=lambda: {"trials": 6, "warmup": "5 steps", "until": "60 steps"}
    )


def write_run(
    folder: Path, cells: Sequence[RecordedCell], recording: Recording | None = None
) -> Path:
    """Write one run into ``folder`` and give its directory."""
    told = recording or Recording()
    paths = RunPaths(folder / told.name)
    (paths.root / "environments").mkdir(parents=True)
    chance = random.Random(told.seed)
    order: list[tuple[str, int]] = []
    for block in range(1, told.trials + 1):
        keys = [cell.key for cell in cells]
        chance.shuffle(keys)
        order += [(key, block) for key in keys]
    _write(paths.run, _identity(told))
    _write(paths.plan, _plan(told, cells, order))
    _write(paths.provenance, _provenance())
    for name in sorted({cell.environment for cell in cells}):
        _write(paths.environment(name), {"version": 1, "name": name, "versions": told.versions})
    for cell in cells:
        if cell.gate is not None:
            paths.gate.mkdir(exist_ok=True)
            gate = {"version": 1, "cell_key": cell.key, "state": cell.gate, "detail": "recorded"}
            _write(paths.gate / f"{cell.key}.json", gate)
    by_key = {cell.key: cell for cell in cells}
    shared = {block: chance.gauss(0, told.block_noise) for block in range(1, told.trials + 1)}
    for position, (key, block) in enumerate(order):
        _trial(paths, told, by_key[key], block, position, shared[block])
    return paths.root


def step_times(behaviour: Behaviour, chance: random.Random, shift: float = 0.0) -> list[float]:
    """Draw the mean step time of each measured window, in seconds."""
    level = behaviour.step_s * exp(shift + chance.gauss(0, behaviour.trial_noise))
    times = []
    for index in range(behaviour.windows):
        time = level * exp(chance.gauss(0, behaviour.window_noise))
        if index < behaviour.slow_windows:
            time *= behaviour.slow_factor
        if behaviour.outlier_every and index % behaviour.outlier_every == 1:
            time *= behaviour.outlier_factor
        if index == behaviour.stall_at:
            time *= 200
        if behaviour.period and index % behaviour.period < behaviour.period / 2:
            time *= 1 + behaviour.period_amplitude
        times.append(time * (1 + behaviour.drift * index / max(1, behaviour.windows - 1)))
    return times


def _trial(
    paths: RunPaths, told: Recording, cell: RecordedCell, block: int, position: int, shift: float
) -> None:
    name = TrialName(block)
    trial = paths.trial(cell.key, name)
    trial.root.mkdir(parents=True)
    chance = random.Random(f"{told.seed}/{cell.key}/{block}")
    started = START_NS + position * 5_000_000_000
    outcome = cell.outcomes.get(block, "ok")
    times = step_times(cell.behaviours.get(block, cell.behaviour), chance, shift)
    trial.job.write_text(job_text(_job(cell, name, trial.root)), encoding="utf-8")
    for rank in range(cell.scale.ranks):
        behaviour = cell.behaviours.get(block, cell.behaviour)
        lines = _events(cell, rank, times, behaviour, outcome=outcome, started=started)
        text = "\n".join(json.dumps(line) for line in lines) + "\n"
        trial.events(rank).write_text(text, encoding="utf-8")
    ranks = tuple(
        RankEnd(
            rank,
            "node0",
            pid=1000 + rank,
            exit_code=0 if outcome == "ok" else 3,
            cpu_s=round(sum(times), 3),
            max_rss_bytes=512 * 2**20,
            started_ns=None
            if cell.start_s is None
            else FIRST_WORD_NS - int((cell.start_s + 0.1 * rank) * 1e9),
        )
        for rank in range(cell.scale.ranks)
    )
    write_outcome(
        Outcome(
            cell_key=cell.key,
            trial=str(name),
            ended=Ended(outcome),
            reason="" if outcome == "ok" else f"the recorded trial ended {outcome}",
            origin=told.origin,
            fingerprint=told.fingerprint,
            mixed=False,
            position=position,
            started_wall_ns=started,
            ended_wall_ns=started + int(sum(times) * 1e9),
            marks=told.marks,
            ranks=ranks,
        ),
        trial,
        settled=False,
    )


def _events(
    cell: RecordedCell,
    rank: int,
    times: Sequence[float],
    behaviour: Behaviour,
    *,
    outcome: str,
    started: int,
) -> list[dict[str, Any]]:
    now, step = FIRST_WORD_NS, 0
    said: list[dict[str, Any]] = [
        {
            "event": "anchor",
            "version": event_format.VERSION,
            "rank": rank,
            "local_rank": rank,
            "size": cell.scale.ranks,
            "host": "node0",
            "pid": 1000 + rank,
            "wall_ns": started,
            "mono_ns": now,
        },
        {"event": "phase", "name": "open", "t": now},
        {"event": "versions", "versions": {cell.framework: "2.13.0"}},
        {"event": "phase", "name": "build", "t": now},
        {"event": "identity", "parameters": cell.parameters, "macs": cell.macs, "shapes": []},
        {"event": "units", "units": {cell.unit: cell.scale.batch_per_rank}},
    ]
    if outcome != "ok":
        kind = outcome if outcome in ("unsupported", "out-of-memory") else "error"
        return [*said, {"event": "failed", "kind": kind, "message": "recorded", "trace": ""}]
    per_window = behaviour.steps_per_window
    warm = [behaviour.step_s * (behaviour.first_factor if i == 0 else 1.2) for i in range(99)]
    for phase, steps in (("warm-up", warm[: behaviour.warmup]), ("measure", list(times))):
        said.append({"event": "phase", "name": phase, "t": now})
        for seconds in steps:
            end = now + int(seconds * per_window * 1e9)
            said.append(
                {
                    "event": "window",
                    "phase": phase,
                    "first": step,
                    "steps": per_window,
                    "start": now,
                    "end": end,
                }
            )
            now, step = end + 20_000, step + per_window
    said.append({"event": "values", "step": step, "values": {"loss": 2.3}})
    said.append({"event": "facts", "facts": {"threads": 2, "peak_device_bytes": None}})
    said.append({"event": "phase", "name": "close", "t": now})
    said.append({"event": "finished", "t": now})
    return said


def _job(cell: RecordedCell, name: TrialName, directory: Path) -> Job:
    return Job(
        purpose="trial",
        cell_key=cell.key,
        trial=str(name),
        workload=cell.workload,
        workload_module=f"workloads.{cell.workload.replace('-', '_')}",
        framework=cell.framework,
        adapter_module=f"harness.worker.adapters.{cell.framework}",
        environment=cell.environment,
        strategy=str(cell.resolved["strategy"]),
        scale=cell.scale,
        factors={name: one for name, one in cell.resolved.items() if name not in OF_SCALE},
        options={},
        warmup=Span(steps=cell.behaviour.warmup),
        until=Span(steps=cell.behaviour.windows),
        seed=1,
        directory=str(directory),
    )


def _identity(told: Recording) -> dict[str, Any]:
    return {
        "version": VERSION,
        "name": told.name,
        "study": told.name.rsplit("-", 3)[0],
        "title": told.title,
        "seed": told.seed,
        "started_wall_ns": START_NS,
        "by": "bakeoff 0.1.0",
    }


def _plan(
    told: Recording, cells: Sequence[RecordedCell], order: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    reference: dict[str, str] = {}
    for cell in cells:
        reference.setdefault(cell.workload, cell.key)
    return {
        "version": VERSION,
        "study": {"name": "recorded", "title": told.title, "question": told.question},
        "platform": told.platform,
        "cells": [
            {
                "key": cell.key,
                "workload": cell.workload,
                "framework": cell.framework,
                "environment": cell.environment,
                "strategy": cell.resolved["strategy"],
                "factors": cell.resolved,
                "scale": vars(cell.scale),
                "options": {},
                "label": cell.label,
                "unit": cell.unit,
                "parameters": cell.parameters,
                "macs": cell.macs,
                "epoch_samples": cell.epoch_samples,
            }
            for cell in cells
        ],
        "holes": list(told.holes),
        "reference": reference if told.reference == "first" else None,
        "order": order,
        "seed": told.seed,
        "trials": told.trials,
        "measure": told.measure,
    }


def _provenance() -> dict[str, Any]:
    return {
        "version": 1,
        "bakeoff": "0.1.0",
        "python": "3.11.9",
        "cpu": {"model": "Recorded CPU", "cores": 2, "governor": "performance"},
        "memory_bytes": 8 * 2**30,
        "kernel": "6.1.0",
        "hostname": "node0",
    }


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
