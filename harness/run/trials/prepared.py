"""What a trial is given: a cell that is ready, what its session has, its job and its workers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.agent.shim import new_door
from harness.environments.worker_python import Interpreter
from harness.gate.proof.proofs import Proofs
from harness.launch.contract import Worker
from harness.machine.share import cpu_quota
from harness.plan.cell import Cell
from harness.platform.platform import Platform
from harness.ranks.interrupts import Interrupts
from harness.ranks.nodes import Nodes
from harness.ranks.rank_environment import environment
from harness.run.storage.tiers import checkpoint_folders, data_set, tier_folder
from harness.store.events.window_size import steps_per_window
from harness.store.layout import RunPaths, TrialName
from harness.study.framework import framework_info
from harness.study.measure import Measure
from harness.study.recorded_variables import patterns_of_steering
from harness.worker.job import Job, Span

COLD = "cold"
PROBE, ATTRIBUTION, CEILINGS = "probe", "attribution", "ceilings"
UNTIMED = (PROBE, ATTRIBUTION, CEILINGS)
"""Jobs that say something of their cell; neither observed nor examined."""
_PURPOSES = {PROBE: "probe", ATTRIBUTION: "attribute", CEILINGS: "ceilings"}
_LOG_TRANSPORTS = {"NCCL_DEBUG": "INFO", "UCX_LOG_LEVEL": "info"}
"""Lets the libraries print which transport they chose: once, while they start."""


@dataclass(frozen=True)
class Prepared:
    """A cell that is ready to run."""

    cell: Cell
    interpreter: Interpreter
    fingerprint: str
    mixed: bool
    """Whether earlier trials of this cell ran with another fingerprint."""
    known: tuple[str, ...] = ()
    """Of its job of ceilings: those that are known of this machine."""


@dataclass(frozen=True)
class SessionContext:
    """What all trials of a session have in common."""

    paths: RunPaths
    payload: str
    run_id: str
    platform: Platform
    measure: Measure
    nodes: Nodes
    interrupts: Interrupts
    proofs: Proofs | None = None
    """Examines what is timed; None: nothing is computed here."""


def job_of(bench: SessionContext, cell: Cell, name: str) -> Job:
    """Write the job of one trial."""
    short = Span(steps=1)
    measure = bench.measure
    data, own = data_set(bench.platform, cell), cell.factors.get("cell_seed")
    paths = {} if data is None else {"data": data}
    if cell.own_files is not None:
        paths["files"] = Path(cell.own_files)
    if cell.content is None and cell.factors.get("tier") is not None:
        paths["tier"] = tier_folder(bench.platform, cell.factors["tier"], "data")
    paths |= checkpoint_folders(bench.platform, cell, f"{bench.run_id}/{cell.key}/{name}")
    return Job(
        purpose=_PURPOSES.get(name, "trial"),
        cell_key=cell.key,
        trial=name,
        workload=cell.workload,
        workload_module=cell.workload_module,
        framework=cell.framework,
        adapter_module=cell.adapter_module,
        environment=cell.environment,
        strategy=cell.strategy,
        scale=cell.scale,
        factors=cell.other_factors,
        options=dict(cell.options),
        warmup=short if name == COLD else measure.warmup,
        until=short if name == COLD else measure.until,
        seed=measure.seed if own is None else int(own),
        directory=str(bench.paths.cell(cell.key) / name),
        paths={name: str(path) for name, path in paths.items()},
        variables=patterns_of_steering(),
        window_steps=_window_steps(bench, cell, name),
    )


def _window_steps(bench: SessionContext, cell: Cell, name: str) -> int | None:
    """Give the size of the windows in the cell's first trial, if this is a later one."""
    trial = TrialName.parse(name)
    return None if trial is None else steps_per_window(bench.paths, cell.key, trial)


def worker_of(bench: SessionContext, prepared: Prepared, name: str, token: str) -> Worker:
    """Say how each rank of a trial is started, from which caches and with which variables."""
    caches = bench.paths.cache(prepared.cell.key)
    if name == COLD or prepared.cell.factors["compile_cache"] == COLD:
        bench.paths.files.remove(caches)
    bench.paths.files.make_folder(caches)  # a container can be given only what is there
    factors, scale, own_code = prepared.cell.factors, prepared.cell.scale, prepared.cell.payload
    own = framework_info(prepared.cell.adapter).rank_variables(
        prepared.cell.strategy, prepared.cell.factors
    )
    env = environment(prepared.interpreter.env, caches, own.caches, _allocator(prepared.cell))
    if scale.ranks > 1 and (name == PROBE or factors["message_bytes"] is not None):
        env = {**_LOG_TRANSPORTS, **env}
    return Worker(
        argv=tuple(prepared.interpreter.argv),
        env=env,
        payload=str(bench.paths.root / own_code) if own_code else bench.payload,
        token=token,
        nodes=bench.nodes.gather(scale.nodes, scale.ranks_per_node, _first_node(prepared.cell)),
        quota=_quota(),
        # A framework's PYTHON* variables are not for the harness's own Python.
        shim=(sys.executable, "-E", "-P", "-m", "harness.agent.shim"),
        door=new_door(),
    )


def _first_node(cell: Cell) -> int | None:
    number: int | None = cell.factors.get("node")  # plans made before it was a factor lack it
    return number


@cache
def _quota() -> float | None:
    """Read the control group's quota, once for a session: it takes dozens of small files."""
    return cpu_quota()


def _allocator(cell: Cell) -> str | None:
    name: str | None = cell.factors["allocator"]
    return name
