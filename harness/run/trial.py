"""Carry one trial through its life: directory, job, launch, agent, outcome last."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.agent.protocol import TrialEnd
from harness.agent.shim import new_door
from harness.environments.worker_python import Interpreter
from harness.errors import FullDisk
from harness.gate.proof.judging import Untrained, sentence
from harness.gate.proof.proofs import Asked, Proofs
from harness.launch.contract import Worker
from harness.machine.share import cpu_quota
from harness.plan.cell import Cell
from harness.platform.platform import Platform
from harness.ranks.commands import Assignment, carry_out
from harness.ranks.failure_reasons import Judgement
from harness.ranks.interrupts import Interrupts
from harness.ranks.nodes import Nodes
from harness.ranks.on_nodes import AgentLost
from harness.ranks.rank_environment import environment
from harness.run import full_disk
from harness.run.storage import lustre
from harness.run.storage.tiers import (
    checkpoint_folders,
    data_set,
    make_room,
    remove_checkpoints,
    tier_folder,
)
from harness.store.events.rank_tail import has_stand_in
from harness.store.events.window_size import steps_per_window
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.outcome import Ended, Outcome, Turns, write_outcome
from harness.store.records import NOT_EXAMINED
from harness.store.run_directory import make_trial
from harness.study.framework import framework_info
from harness.study.measure import Measure
from harness.study.recorded_variables import patterns_of_steering
from harness.worker import job as jobs
from harness.worker.job import Job, Span

COLD = "cold"
PROBE = "probe"
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


@dataclass(frozen=True)
class BegunTrial:
    """A trial that has its directory and its commands, and waits to be carried out."""

    bench: SessionContext
    prepared: Prepared
    name: TrialName | str
    position: int
    assignment: Assignment
    asked: Asked | None
    started_ns: int

    @property
    def paths(self) -> TrialPaths:
        """Its directory."""
        return self.assignment.trial

    def release(self) -> None:
        """Remove what it kept outside of its directory, however it ended."""
        token = self.assignment.worker.token
        remove_checkpoints(self.bench.platform, self.prepared.cell, token)


def run_trial(
    bench: SessionContext,
    prepared: Prepared,
    name: TrialName | str,
    *,
    position: int,
    turns: Turns | None = None,
    on_tick: Callable[[TrialPaths], None],
) -> Outcome:
    """Run one trial and write its outcome; give the outcome.

    ``turns`` says why it runs alone where others of its study take turns.
    """
    begun = begin_trial(bench, prepared, name, position=position)
    try:
        end, judged = carry_out(
            begun.assignment,
            bench.nodes,
            interrupts=bench.interrupts,
            on_tick=lambda: on_tick(begun.paths),
        )
    finally:
        begun.release()
    return conclude_trial(begun, end, judged, turns)


def begin_trial(
    bench: SessionContext,
    prepared: Prepared,
    name: TrialName | str,
    *,
    position: int,
    takes_turns: bool = False,
) -> BegunTrial:
    """Make a trial's directory and its commands."""
    cell = prepared.cell
    token = f"{bench.run_id}/{cell.key}/{name}"
    worker = _worker(bench, prepared, str(name), token)
    job = job_of(bench, cell, str(name))
    asked = _asked(bench, cell, name)
    if asked is not None:
        job = replace(job, paths={**job.paths, **_proof_paths(bench, cell, asked, str(name))})
    trial = make_trial(bench.paths, cell.key, name, jobs.text(job))
    launch = bench.nodes.launcher.launch(str(trial.job), job, bench.platform, worker)
    started_ns = time.time_ns()
    if cell.factors["container"] or lustre.of(cell.factors).suffix:
        make_room(bench.platform, cell, token)
    assignment = Assignment(
        trial=trial,
        worker=worker,
        launch=launch,
        timeout_s=bench.measure.timeout_s,
        memory_bytes=bench.measure.memory_bytes,
        observe=None if name == PROBE else dict(bench.platform.observer.rates),
        turns=takes_turns,
    )
    return BegunTrial(bench, prepared, name, position, assignment, asked, started_ns)


def conclude_trial(
    begun: BegunTrial, end: TrialEnd | AgentLost, judged: Judgement, turns: Turns | None
) -> Outcome:
    """Write the outcome of a trial that has ended; give the outcome."""
    bench, trial, name, asked = begun.bench, begun.paths, begun.name, begun.asked
    cell, launch = begun.prepared.cell, begun.assignment.launch
    marks = launch.marks
    if isinstance(end, TrialEnd) and end.unobserved is not None:
        marks = (*marks, f"the hardware was not observed: {end.unobserved}")
    reason = judged.reason
    if judged.ended is Ended.FAILED:
        if full_disk.is_full(trial.root):
            # No property of the cell: without an outcome, the trial will run again.
            raise FullDisk(f"{trial.root}: the disk is full. {reason.rstrip('.')}.")
        reason += full_disk.hint(reason)
    outcome = Outcome(
        cell_key=cell.key,
        trial=str(name),
        ended=judged.ended,
        reason=reason,
        origin=_origin(trial, end),
        fingerprint=begun.prepared.fingerprint,
        mixed=begun.prepared.mixed,
        position=begun.position,
        started_wall_ns=begun.started_ns,
        ended_wall_ns=time.time_ns(),
        marks=marks,
        turns=turns,
    )
    if isinstance(end, TrialEnd):
        outcome = _with_testimony(outcome, end, _clocks(bench))
    if asked is not None and isinstance(name, TrialName) and outcome.is_ok:
        outcome = _proved(bench, cell, asked, trial, outcome)
    trial.files.remove(trial.proved)
    write_outcome(outcome, trial)
    return outcome


def job_of(bench: SessionContext, cell: Cell, name: str) -> Job:
    """Write the job of one trial."""
    short = Span(steps=1)
    measure = bench.measure
    data = data_set(bench.platform, cell)
    paths = {} if data is None else {"data": data}
    if cell.own_files is not None:
        paths["files"] = Path(cell.own_files)
    if cell.content is None and cell.factors.get("tier") is not None:
        paths["tier"] = tier_folder(bench.platform, cell.factors["tier"], "data")
    paths |= checkpoint_folders(bench.platform, cell, f"{bench.run_id}/{cell.key}/{name}")
    return Job(
        purpose="probe" if name == PROBE else "trial",
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
        seed=measure.seed,
        directory=str(bench.paths.cell(cell.key) / name),
        paths={name: str(path) for name, path in paths.items()},
        variables=patterns_of_steering(),
        window_steps=_window_steps(bench, cell, name),
    )


def _window_steps(bench: SessionContext, cell: Cell, name: str) -> int | None:
    """Give the size of the windows in the cell's first trial, if this is a later one."""
    trial = TrialName.parse(name)
    return None if trial is None else steps_per_window(bench.paths, cell.key, trial)


def _asked(bench: SessionContext, cell: Cell, name: TrialName | str) -> Asked | None:
    """Say what a trial starts from; a probe and what is not trained start from nothing of ours."""
    if bench.proofs is None or name == PROBE:
        return None
    return bench.proofs.asked(cell, name.block if isinstance(name, TrialName) else 0)


def _proof_paths(bench: SessionContext, cell: Cell, asked: Asked, name: str) -> dict[str, str]:
    paths = {"proof": str(asked.given)}
    if not asked.why_not and name != COLD:
        paths["proved"] = str(TrialPaths(bench.paths.cells / cell.key / name).proved)
    return paths


def _proved(
    bench: SessionContext, cell: Cell, asked: Asked, trial: TrialPaths, outcome: Outcome
) -> Outcome:
    """Judge what a trial's activity made of its examination: a fault fails the trial."""
    assert bench.proofs is not None
    if asked.why_not:
        return replace(outcome, proof=f"{NOT_EXAMINED}{asked.why_not}")
    try:
        words = bench.proofs.judge(cell, asked, trial, outcome.at_work_s)
    except Untrained as why:
        return replace(outcome, ended=Ended.FAILED, reason=sentence(why))
    return replace(outcome, proof=words)


def _worker(bench: SessionContext, prepared: Prepared, name: str, token: str) -> Worker:
    caches = bench.paths.cache(prepared.cell.key)
    if name == COLD or prepared.cell.factors["compile_cache"] == COLD:
        bench.paths.files.remove(caches)
    bench.paths.files.make_folder(caches)  # a container can be given only what is there
    factors, scale = prepared.cell.factors, prepared.cell.scale
    own = framework_info(prepared.cell.adapter).rank_variables(prepared.cell.strategy)
    env = environment(prepared.interpreter.env, caches, own.caches, _allocator(prepared.cell))
    if scale.ranks > 1 and (name == PROBE or factors["message_bytes"] is not None):
        env = {**_LOG_TRANSPORTS, **env}
    return Worker(
        argv=tuple(prepared.interpreter.argv),
        env=env,
        payload=bench.payload,
        token=token,
        nodes=bench.nodes.gather(scale.nodes, scale.ranks_per_node),
        quota=_quota(),
        # A framework's PYTHON* variables are not for the harness's own Python.
        shim=(sys.executable, "-E", "-P", "-m", "harness.agent.shim"),
        door=new_door(),
    )


@cache
def _quota() -> float | None:
    """Read the control group's quota, once for a session: it takes dozens of small files."""
    return cpu_quota()


def _allocator(cell: Cell) -> str | None:
    name: str | None = cell.factors["allocator"]
    return name


def _with_testimony(outcome: Outcome, end: TrialEnd, clocks: Mapping[str, Any]) -> Outcome:
    """Add the agents' reports to an outcome; without them only the host's clock is known."""
    return replace(
        outcome,
        started_wall_ns=end.started_wall_ns,
        ended_wall_ns=end.ended_wall_ns,
        ranks=end.ranks,
        memory=end.memory,
        leftovers=end.leftovers,
        survivors=end.survivors,
        clocks=clocks,
    )


def _clocks(bench: SessionContext) -> dict[str, Any]:
    """Give the agents' clock records since the previous trial."""
    return {
        agent.host: agent.clock.record()
        for agent in bench.nodes.agents()
        if agent.clock is not None
    }


def _origin(trial: TrialPaths, end: TrialEnd | AgentLost) -> str:
    """Call a trial measured if neither its framework nor what observed it was a stand-in."""
    if isinstance(end, AgentLost):
        return "measured"
    pretended = end.stand_ins or has_stand_in(trial, (one.rank for one in end.ranks))
    return "stand-in" if pretended else "measured"
