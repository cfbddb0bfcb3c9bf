"""Carry one trial through its life: directory, job, launch, agent, outcome last."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.agent.protocol import RankCommand, TrialCommand, TrialEnd
from harness.environments.worker_python import Interpreter
from harness.errors import RunError
from harness.launch.contract import Launch, Node, Worker
from harness.launch.placement import DOOR
from harness.machine.share import cpu_quota
from harness.plan.cell import Cell
from harness.platform.platform import Platform
from harness.ranks.interrupts import Interrupts
from harness.ranks.nodes import Nodes
from harness.ranks.on_nodes import Lost
from harness.ranks.outcome import judge
from harness.ranks.rank_environment import environment
from harness.run.storage import lustre
from harness.run.storage.tiers import (
    checkpoint_folders,
    data_set,
    make_room,
    remove_checkpoints,
    tier_folder,
)
from harness.store.events.rank_tail import has_stand_in, said
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.outcome import Outcome, write_outcome
from harness.store.run_directory import make_trial
from harness.study.framework import framework_info
from harness.study.measure import Measure
from harness.worker import job as jobs
from harness.worker.job import Job, Span

COLD = "cold"
PROBE = "probe"
_GRACE_S = 5.0
_TELLING = {"NCCL_DEBUG": "INFO", "UCX_LOG_LEVEL": "info"}
"""Lets the libraries print which transport they chose: once, while they start."""
_OUTPUT_BYTES = 1 << 20


@dataclass(frozen=True)
class Prepared:
    """A cell that is ready to run."""

    cell: Cell
    interpreter: Interpreter
    fingerprint: str
    mixed: bool
    """Whether earlier trials of this cell ran with another fingerprint."""


@dataclass(frozen=True)
class Bench:
    """What all trials of a session share."""

    paths: RunPaths
    payload: str
    run_id: str
    platform: Platform
    measure: Measure
    nodes: Nodes
    interrupts: Interrupts


def run_trial(
    bench: Bench,
    prepared: Prepared,
    name: TrialName | str,
    *,
    position: int,
    on_tick: Callable[[TrialPaths], None],
) -> Outcome:
    """Run one trial and write its outcome; give the outcome."""
    cell = prepared.cell
    token = f"{bench.run_id}/{cell.key}/{name}"
    worker = _worker(bench, prepared, str(name), token)
    job = job_of(bench, cell, str(name))
    trial = make_trial(bench.paths, cell.key, name, jobs.text(job))
    launch = bench.nodes.launcher.launch(str(trial.job), job, bench.platform, worker)
    started_ns = time.time_ns()
    if cell.factors["container"] or lustre.of(cell.factors).suffix:
        make_room(bench.platform, cell, token)
    try:
        end = bench.nodes.run(
            _commands(bench, trial, launch, worker),
            interrupts=bench.interrupts,
            on_tick=lambda: on_tick(trial),
        )
    finally:
        remove_checkpoints(bench.platform, cell, token)
    marks = launch.marks
    if isinstance(end, TrialEnd) and end.unobserved is not None:
        marks = (*marks, f"the hardware was not observed: {end.unobserved}")
    outcome = _outcome(
        bench, prepared, trial, end, position=position, marks=marks, started_ns=started_ns
    )
    write_outcome(outcome, trial)
    return outcome


def job_of(bench: Bench, cell: Cell, name: str) -> Job:
    """Write the job of one trial."""
    short = Span(steps=1)
    measure = bench.measure
    data = data_set(bench.platform, cell)
    paths = {} if data is None else {"data": data}
    if cell.own_files is not None:
        paths["files"] = Path(cell.own_files)
    if cell.content is None and cell.factors.get("tier") is not None:
        paths["tier"] = tier_folder(bench.platform, str(cell.factors["tier"]), "data")
    paths |= checkpoint_folders(bench.platform, cell, f"{bench.run_id}/{cell.key}/{name}")
    return Job(
        purpose="probe" if name == PROBE else "trial",
        cell_key=cell.key,
        trial=name,
        workload=cell.workload,
        workload_module=cell.workload_module,
        framework=cell.framework,
        adapter_module=cell.adapter_module,
        strategy=cell.strategy,
        factors=dict(cell.factors),
        options=dict(cell.options),
        warmup=short if name == COLD else measure.warmup,
        until=short if name == COLD else measure.until,
        seed=measure.seed,
        directory=str(bench.paths.cells / cell.key / name),
        paths={name: str(path) for name, path in paths.items()},
    )


def _worker(bench: Bench, prepared: Prepared, name: str, token: str) -> Worker:
    caches = bench.paths.cache(prepared.cell.key)
    if name == COLD or prepared.cell.factors["compile_cache"] == COLD:
        shutil.rmtree(caches, ignore_errors=True)
    caches.mkdir(parents=True, exist_ok=True)  # a container can be given only what is there
    factors = prepared.cell.factors
    own = framework_info(prepared.cell.adapter).rank_variables(prepared.cell.strategy)
    env = environment(prepared.interpreter.env, caches, own.caches, _allocator(prepared.cell))
    if prepared.cell.ranks > 1 and (name == PROBE or factors["message_bytes"] is not None):
        env = {**_TELLING, **env}
    return Worker(
        argv=tuple(prepared.interpreter.argv),
        env=env,
        payload=bench.payload,
        token=token,
        nodes=bench.nodes.gather(int(factors["nodes"] or 1), int(factors["ranks_per_node"] or 1)),
        quota=_quota(),
        shim=(sys.executable, "-P", "-m", "harness.agent.shim"),
    )


@cache
def _quota() -> float | None:
    """Read the control group once: dozens of small files again."""
    return cpu_quota()


def _allocator(cell: Cell) -> str | None:
    name = cell.factors["allocator"]
    return None if name is None else str(name)


def _commands(
    bench: Bench, trial: TrialPaths, launch: Launch, worker: Worker
) -> list[tuple[Node, int | None, TrialCommand]]:
    """Give every node's agent its part."""
    return [
        (node, launch.observers[index], _command(bench, trial, launch, worker, index))
        for index, node in enumerate(worker.nodes)
    ]


def _command(
    bench: Bench, trial: TrialPaths, launch: Launch, worker: Worker, node: int
) -> TrialCommand:
    return TrialCommand(
        token=worker.token,
        ranks=tuple(
            RankCommand(
                rank=rank.rank,
                argv=rank.argv,
                env=rank.env,
                cwd=rank.cwd,
                cpus=rank.cpus,
                stdout=str(trial.stdout(rank.rank)),
                stderr=str(trial.stderr(rank.rank)),
            )
            for rank in launch.ranks
            if rank.node == node
        ),
        timeout_s=bench.measure.timeout_s,
        grace_s=_GRACE_S,
        memory_bytes=bench.measure.memory_bytes,
        output_bytes=_OUTPUT_BYTES,
        observe=None if trial.root.name == PROBE else str(trial.root),
        rates=dict(bench.platform.observer.rates),
        door=launch.door,
        starter=_starter(bench, trial, launch, worker) if node == 0 and launch.starter else None,
    )


def _starter(bench: Bench, trial: TrialPaths, launch: Launch, worker: Worker) -> RankCommand:
    """Start the engine's own command beside the first node's ranks, as rank -1."""
    assert launch.door is not None
    env = {**worker.env, **bench.platform.environment}
    return RankCommand(
        rank=-1,
        argv=launch.starter,
        env={**env, "BAKEOFF_TOKEN": worker.token, DOOR: launch.door},
        cwd=str(trial.root),
        cpus=worker.nodes[0].cpus,
        stdout=str(trial.starter_output),
        stderr=str(trial.starter_errors),
    )


def _outcome(
    bench: Bench,
    prepared: Prepared,
    trial: TrialPaths,
    end: TrialEnd | Lost,
    *,
    position: int,
    marks: tuple[str, ...],
    started_ns: int,
) -> Outcome:
    """Join how the ranks ended with what was run; of a lost agent only the host's clock is left."""
    ranks = () if isinstance(end, Lost) else end.ranks
    words = {rank.rank: said(trial, rank.rank) for rank in ranks}
    judged = judge(end, words, trial=trial, timeout_s=bench.measure.timeout_s)
    if os.strerror(errno.ENOSPC) in judged.reason:
        # No property of the cell: without an outcome, the trial will run again.
        raise RunError(f"{trial.root}: the disk is full. {judged.reason}")
    outcome = Outcome(
        cell_key=prepared.cell.key,
        trial=trial.root.name,
        ended=judged.ended,
        reason=judged.reason,
        origin=_origin(trial, end),
        fingerprint=prepared.fingerprint,
        mixed=prepared.mixed,
        position=position,
        started_wall_ns=started_ns,
        ended_wall_ns=time.time_ns(),
        marks=marks,
        ranks=ranks,
    )
    if isinstance(end, Lost):
        return outcome
    return replace(
        outcome,
        started_wall_ns=end.started_wall_ns,
        ended_wall_ns=end.ended_wall_ns,
        memory=end.memory,
        leftovers=end.leftovers,
        survivors=end.survivors,
        clocks=_clocks(bench),
    )


def _clocks(bench: Bench) -> dict[str, Any]:
    """Give what is known of the agents' clocks since the trial before."""
    return {
        agent.host: agent.clock.told() for agent in bench.nodes.agents() if agent.clock is not None
    }


def _origin(trial: TrialPaths, end: TrialEnd | Lost) -> str:
    """Call a trial measured if neither its framework nor what observed it was a stand-in."""
    if isinstance(end, Lost):
        return "measured"
    pretended = end.stand_ins or has_stand_in(trial, (one.rank for one in end.ranks))
    return "stand-in" if pretended else "measured"
