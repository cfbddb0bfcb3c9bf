"""Carry trials out on a simulated platform: a model writes the ranks' events.

Everything around is what it is for a measured run: plan, order, run directory, ledger, readers.
Only the disk is not waited for: a simulated trial that a crash loses costs nothing to play again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence

from harness import plugins
from harness.errors import Unavailable
from harness.launch.cluster_model import Cluster, NoModel, SimulatedStep, step
from harness.launch.launchers import simulated
from harness.launch.launchers.simulated import SimulatedFault, SimulatedRanks
from harness.plan.cell import Cell
from harness.ranks.failure_reasons import AGENT_LOST, Judgement
from harness.run.trials.prepared import Prepared, SessionContext, job_of
from harness.store.layout import TrialName, TrialPaths
from harness.store.outcome import Ended, Outcome, RankEnd, write_outcome
from harness.store.run_directory.trial_folders import make_trial
from harness.worker import job as jobs
from harness.worker.events import VERSION
from harness.worker.job import Job

ORIGIN = "simulated"


class Simulation:
    """The state of a simulated cluster over one session."""

    def __init__(self, bench: SessionContext) -> None:
        self._bench = bench
        self._cluster = Cluster.of(bench.platform)
        self._steps: dict[str, SimulatedStep | NoModel] = {}
        self._down: set[int] = set()

    def run_trial(
        self,
        prepared: Prepared,
        name: TrialName | str,
        *,
        position: int,
        on_tick: Callable[[TrialPaths], None],
    ) -> Outcome:
        """Play one trial and write its outcome; give the outcome."""
        bench, cell = self._bench, prepared.cell
        job = job_of(bench, cell, str(name))
        trial = make_trial(bench.paths, cell.key, name, jobs.text(job))
        started_ns = time.time_ns()
        told = self._step(cell)
        where = self._healthy(cell.scale.nodes)
        played = None
        if isinstance(told, SimulatedStep):
            played = simulated.play(
                job,
                self._cluster,
                told,
                where,
                start_ns=started_ns,
                start_up_s=cell.start_up_s + (bench.platform.start_up or 0.0),
                timeout_s=bench.measure.timeout_s,
                seed=_seed(job),
            )
            hosts = self._write(trial, played, where, cell, started_ns)
            if played.fault is not None and played.fault.kind == "node":
                self._down.add(where[played.fault.node])
            judged = self._judge(played.fault, where, cell)
        else:
            hosts, judged = [], Judgement(Ended.UNSUPPORTED, f"{told}.")
        on_tick(trial)
        outcome = Outcome(
            cell_key=cell.key,
            trial=str(name),
            ended=judged.ended,
            reason=judged.reason,
            origin=ORIGIN,
            fingerprint=prepared.fingerprint,
            mixed=prepared.mixed,
            position=position,
            started_wall_ns=started_ns,
            ended_wall_ns=started_ns + round((played.seconds if played else 0.0) * 1e9),
            ranks=tuple(_rank(rank, host, played) for rank, host in enumerate(hosts)),
        )
        write_outcome(outcome, trial, settled=False)
        return outcome

    def _step(self, cell: Cell) -> SimulatedStep | NoModel:
        if cell.key not in self._steps:
            try:
                self._steps[cell.key] = step(
                    self._cluster, cell, plugins.workload(cell.workload, cell.factors)
                )
            except NoModel as why:
                self._steps[cell.key] = why
        return self._steps[cell.key]

    def _healthy(self, count: int) -> Sequence[int]:
        """Choose nodes that have not died; where too few are left, the dead are back."""
        there = self._bench.platform.nodes or count
        if count > there:
            raise Unavailable(f"{self._bench.platform.name} offers {there} of {count} nodes.")
        if there - len(self._down) < count:
            self._down.clear()
        left = (node for node in range(there) if node not in self._down)
        return [next(left) for _ in range(count)]

    def _write(
        self,
        trial: TrialPaths,
        played: SimulatedRanks,
        where: Sequence[int],
        cell: Cell,
        started_ns: int,
    ) -> list[str]:
        """Write what each rank said; give the ranks' hosts."""
        each = cell.scale.ranks_per_node
        hosts = [_host(node) for node in where for _ in range(each)]
        for rank, host in enumerate(hosts):
            anchor = {
                "event": "anchor",
                "version": VERSION,
                "rank": rank,
                "local_rank": rank % each,
                "size": len(hosts),
                "host": host,
                "pid": 0,
                "wall_ns": started_ns,
                "mono_ns": started_ns,
            }
            lines = played.said[rank if len(played.said) > 1 else 0]
            text = json.dumps(anchor, separators=(",", ":")) + "\n" + lines
            trial.files.write(trial.events(rank), text, settled=False)
        return hosts

    def _judge(self, fault: SimulatedFault | None, where: Sequence[int], cell: Cell) -> Judgement:
        limit = f"{self._bench.measure.timeout_s:g} s"
        if fault is None:
            return Judgement(Ended.OK, "")
        if fault.kind == "node":
            return Judgement(Ended.NODE_LOST, AGENT_LOST.format(_host(where[fault.node])))
        if fault.kind == "time":
            return Judgement(
                Ended.TIMED_OUT, f"It had not ended after {limit}; raise measure.timeout."
            )
        each = cell.scale.ranks_per_node
        after = (fault.node + 1) % len(where)
        return Judgement(
            Ended.TIMED_OUT,
            f"Rank {after * each} on {_host(where[after])} waited for rank "
            f"{fault.node * each + each - 1} on {_host(where[fault.node])}, whose link was cut "
            f"after {fault.after_s:.1f} s; nothing had ended after {limit}.",
        )


def _rank(rank: int, host: str, played: SimulatedRanks | None) -> RankEnd:
    """Give the end of a simulated rank."""
    is_well = played is not None and played.fault is None
    return RankEnd(
        rank,
        host,
        exit_code=0 if is_well else None,
        cpu_s=None if played is None else round(played.compute_s, 3),
    )


def _host(node: int) -> str:
    return f"n{node + 1:04d}"


def _seed(job: Job) -> int:
    text = f"{job.seed}/{job.cell_key}/{job.trial}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")
