"""Carry one trial through its life: directory, job, launch, agent, outcome last."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.agent.protocol import TrialEnd
from harness.errors import FullDisk
from harness.gate.proof.proofs import Asked
from harness.gate.proof.untrained import Untrained, sentence
from harness.plan.cell import Cell
from harness.ranks.commands import Assignment, carry_out
from harness.ranks.failure_reasons import Judgement
from harness.ranks.on_nodes import AgentLost
from harness.run import full_disk
from harness.run.storage import lustre
from harness.run.storage.tiers import (
    make_room,
    remove_checkpoints,
)
from harness.run.trials.prepared import (
    COLD,
    UNTIMED,
    Prepared,
    SessionContext,
    job_of,
    worker_of,
)
from harness.store.events.rank_tail import has_stand_in
from harness.store.layout import TrialName, TrialPaths
from harness.store.outcome import Ended, Outcome, TurnsRecord, write_outcome
from harness.store.records import NOT_EXAMINED
from harness.store.run_directory.trial_folders import make_trial
from harness.worker import job as jobs


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
    turns: TurnsRecord | None = None,
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
    worker = worker_of(bench, prepared, str(name), token)
    job = replace(job_of(bench, cell, str(name)), known=list(prepared.known))
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
        observe=None if name in UNTIMED else dict(bench.platform.observer.rates),
        turns=takes_turns,
    )
    return BegunTrial(bench, prepared, name, position, assignment, asked, started_ns)


def conclude_trial(
    begun: BegunTrial, end: TrialEnd | AgentLost, judged: Judgement, turns: TurnsRecord | None
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


def _asked(bench: SessionContext, cell: Cell, name: TrialName | str) -> Asked | None:
    """Say what a trial starts from; untimed jobs, and what is not trained: nothing of ours."""
    if bench.proofs is None or name in UNTIMED:
        return None
    return bench.proofs.asked(cell, name.block if isinstance(name, TrialName) else 0)


def _proof_paths(bench: SessionContext, cell: Cell, asked: Asked, name: str) -> dict[str, str]:
    paths = {"proof": str(asked.given)}
    if not asked.why_not and name != COLD:
        paths["proved"] = TrialPaths(bench.paths.cells / cell.key / name).proved.name
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
