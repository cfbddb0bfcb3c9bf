"""One process's work on a run: proofs, probes, then trials, block after block."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any

from harness.gate.proof.proofs import Proofs
from harness.plan.plan import Plan
from harness.ranks.agent_client import TICK_S
from harness.ranks.interrupts import Interrupts
from harness.ranks.nodes import HERE, Nodes, TooFewNodes
from harness.run.gate_first import Prove, prove
from harness.run.ledger import Ledger, TimeLeft, guess_s
from harness.run.progress import InterruptsTold, Progress, ProgressListener, SessionResult
from harness.run.setup import TrialBasis
from harness.run.trials.prepared import Prepared, SessionContext
from harness.run.trials.trial import begin_trial, run_trial
from harness.run.trials.untimed_work import UntimedWork
from harness.run.trust import knows_session, remember_session
from harness.run.turns.block import Blocks
from harness.run.turns.groups import Group
from harness.run.turns.known_bias import KnownBias
from harness.run.turns.live_trial import LiveTrial
from harness.run.turns.taking_turns import TakingTurns
from harness.store.events.running_trial import read_trial_progress, units_per_s
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.outcome import Ended, Outcome
from harness.store.paths.handles import made
from harness.store.run_directory import session_log
from harness.store.run_directory.identity import Identity, identity

_LOST_AT_MOST = 2
"""Trials of one cell in succession, lost with their nodes, before the session leaves the cell."""


class Work:
    """One process's work on one run."""

    def __init__(
        self,
        paths: RunPaths,
        plan: Plan,
        cells: dict[str, Prepared],
        observer: ProgressListener,
        ledger: Ledger,
    ) -> None:
        self._paths = paths
        self._plan = plan
        self._cells = cells
        self._observer = observer
        self._ledger = ledger
        self._interrupts = Interrupts()
        self._interrupts_told = InterruptsTold(self._interrupts, observer)
        self._shown_s = 0.0
        """When the progress of trials by turns was last shown."""
        self._position = self._first = ledger.positions()
        self._short: TooFewNodes | None = None
        """Why wider trials wait: nodes died, and this session expects none back."""
        self._lost = Counter[str]()
        """How often in succession trials of a cell were lost with their nodes."""
        guesses = {cell.key: guess_s(plan, cell.start_up_s) for cell in plan.cells}
        self._time_left = TimeLeft(guesses)
        known = identity(paths)
        left_by = known.id if knows_session(paths) else None
        remember_session(paths)
        proofs = Proofs(plan.measure.seed, observer.noted)
        self._bench = SessionContext(
            paths=paths,
            payload=str(paths.root / known.payload),
            run_id=known.id,
            platform=plan.platform,
            measure=plan.measure,
            nodes=Nodes(plan.platform, paths.agent_errors, run=left_by),
            interrupts=self._interrupts,
            proofs=None if plan.platform.is_simulated else proofs,
        )
        self._untimed = UntimedWork(paths, plan, cells, observer, self._interrupts, self._try)
        self._blocks: Blocks | None = None
        """Where trials of a block may live at the same time."""
        if plan.measure.turns and not plan.platform.is_simulated:
            bias = KnownBias(plan.measure, cells, known.id)
            self._blocks = Blocks(plan, paths, ledger.due, bias)
        self._carry_out_one: Callable[..., Outcome] = partial(run_trial, self._bench)
        if plan.platform.is_simulated:
            from harness.run.trials.simulated_trial import Simulation  # most sessions measure

            self._carry_out_one = Simulation(self._bench).run_trial

    def prove(self, basis: TrialBasis, known: Identity, waiting: Set[str], ensure: Prove) -> None:
        """Run the gate for the cells without a result; a signal during it stops the session."""
        observer, plan = self._observer, self._plan
        stopped = prove(
            self._paths, plan, basis, known, waiting=waiting, observer=observer, ensure=ensure
        )
        if stopped:
            self._interrupts.take_over(stopped)

    def carry_out(self) -> SessionResult:
        """Run the trials that are due."""
        try:
            with self._interrupts.installed():
                self._untimed.before_trials()
                for block, keys in self._ledger.blocks():
                    if not self._run_block(block, keys):
                        break
                self._untimed.after_trials()
        finally:
            self._bench.nodes.close()
            if self._bench.proofs is not None:
                self._bench.proofs.release()
        nothing_ran = self._position == self._first
        if self._short is not None and nothing_ran and not self._interrupts.count:
            raise self._short
        result = self.result()
        what = "interrupted" if result.interrupted else "finished"
        session_log.log(self._paths, what, done=result.done, total=result.total)
        return result

    def result(self) -> SessionResult:
        """Count the run's trials by state."""
        count, left = self._ledger.due.count(), self._ledger.due.left()
        is_unfinished = count.left or self._untimed.is_undivided()
        return SessionResult(
            run=self._paths.root,
            total=count.total,
            done=count.done,
            ok=count.ok,
            failed=count.done - count.ok,
            skipped=count.skipped,
            waiting=0 if self._short is None else count.left,
            interrupted=self._interrupts.exit_code if is_unfinished else 0,
            lost=sum(left[key] for key in self._lost if self._is_left(key)),
            made=made(self._paths.root),
        )

    def _run_block(self, block: int, keys: Sequence[str]) -> bool:
        """Run what a block still needs; tell whether to go on to the next."""
        self._run_groups(block, keys)
        for key in keys:
            self._run_cell(key, block)
        if self._interrupts.count:
            return False
        # What waits for its nodes is a part of the block, so there is nothing to decide yet.
        return self._ledger.waits(keys, block) or not self._ledger.is_enough(block)

    def _is_left(self, key: str) -> bool:
        """Whether a cell's trials are left to the next session: this one's nodes die of them."""
        return self._lost[key] >= _LOST_AT_MOST

    def _run_cell(self, key: str, block: int) -> None:
        name = self._ledger.due.needs(key, block)
        if name is not None and (why := self._ledger.due.given_up(key)) is not None:
            session_log.log(self._paths, "skipped", cell=key, block=block, why=why)
            return
        while name is not None and self._interrupts.count == 0 and not self._is_left(key):
            outcome = self._run(self._cells[key], name, block)
            if outcome is None:
                return
            self._enter(name, outcome)
            name = self._ledger.due.needs(key, block)

    def _enter(self, name: TrialName, outcome: Outcome) -> None:
        """Take down how a trial of a block ended, and what follows from it."""
        key = outcome.cell_key
        self._lost[key] = self._lost[key] + 1 if outcome.ended is Ended.NODE_LOST else 0
        self._ledger.enter(key, name, outcome)
        self._tell(self._cells[key], name, name.block, outcome)

    def _run_groups(self, block: int, keys: Sequence[str]) -> None:
        """Run those trials of a block that take turns, with those that are due again."""
        if self._blocks is None:
            return
        while self._interrupts.count == 0:
            groups = self._blocks.groups(block, keys, self._is_left)
            if not groups:
                return
            for group in groups:
                self._run_group(self._blocks, group, block)

    def _run_group(self, blocks: Blocks, group: Group, block: int) -> None:
        names: dict[str, TrialName] = {}

        def begin(key: str, seat: int) -> LiveTrial:
            self._position += 1
            names[key] = name = self._ledger.due.attempt(key, block)
            cell = self._cells[key]
            begun = begin_trial(self._bench, cell, name, position=self._position, takes_turns=True)
            return LiveTrial(begun, self._bench.nodes.agent(HERE, seat), self._interrupts)

        def tick(trial: LiveTrial, doing: str) -> None:
            self._interrupts_told.say()
            if time.monotonic() - self._shown_s < TICK_S:
                return  # turns may be short, and this reads files
            self._shown_s = time.monotonic()
            one, name = self._cells[trial.key], names[trial.key]
            progress = self._progress(one, name, block, trial.paths, trial.at_work_s)
            self._observer.progressed(replace(progress, turn=f"{doing}, {len(names)} by turns"))

        taking = TakingTurns(
            measure=self._plan.measure,
            tick=tick,
            bias=blocks.bias,
            is_stopped=lambda: self._interrupts.count > 0,
        )
        for outcome in taking.run(group, block, begin):
            if outcome.is_ok:
                self._time_left.took(outcome.cell_key, outcome.at_work_s)
            blocks.learn(outcome)
            self._enter(names[outcome.cell_key], outcome)

    def _try(self, one: Prepared, name: str) -> None:
        """Run an untimed job, which is of no block."""
        outcome = self._run(one, name, 0)
        if outcome is not None:
            self._tell(one, name, 0, outcome)

    def _run(self, one: Prepared, name: TrialName | str, block: int) -> Outcome | None:
        """Run a trial, or leave it for another session where too few nodes answer."""
        if self._short is not None and one.cell.scale.nodes > self._short.found:
            return None
        try:
            return self._run_here(one, name, block)
        except TooFewNodes as problem:
            self._position -= 1
            self._short = problem
            self._observer.noted(f"{problem}\nWhat needs more nodes waits; the rest goes on.")
            return None

    def _run_here(self, one: Prepared, name: TrialName | str, block: int) -> Outcome:
        self._position += 1
        began = time.monotonic()

        def tick(trial: TrialPaths | None) -> None:
            self._interrupts_told.say()
            elapsed_s = time.monotonic() - began
            self._observer.progressed(self._progress(one, name, block, trial, elapsed_s))

        tick(None)
        alone: dict[str, Any] = {}
        if self._blocks is not None and isinstance(name, TrialName):
            alone = {"turns": self._blocks.why_alone(one.cell.key, block)}
        outcome = self._carry_out_one(one, name, position=self._position, on_tick=tick, **alone)
        if outcome.is_ok and isinstance(name, TrialName):
            self._time_left.took(one.cell.key, outcome.at_work_s)
        return outcome

    def _tell(self, one: Prepared, name: TrialName | str, block: int, outcome: Outcome) -> None:
        """Log how a trial ended, and pass it to the listener."""
        if self._blocks is not None:
            self._blocks.memory.saw(outcome)
        what = {"cell": one.cell.key, "trial": str(name), "outcome": outcome.ended}
        session_log.log(self._paths, "trial", **what, seconds=round(outcome.seconds, 3))
        progress = self._progress(one, name, block, None, outcome.seconds)
        self._observer.trial_ended(progress, outcome)

    def _progress(
        self,
        one: Prepared,
        name: TrialName | str,
        block: int,
        trial: TrialPaths | None,
        elapsed_s: float,
    ) -> Progress:
        now = read_trial_progress(trial) if trial is not None else None
        total, left = len(self._ledger.due.planned()), self._ledger.due.left()
        return Progress(
            run=self._paths.root,
            done=total - left.total(),
            total=total,
            block=block,
            blocks=max(self._plan.measure.looks[-1], self._plan.order[-1][1]),
            label=one.cell.label,
            trial=str(name),
            phase=now.phase if now else None,
            rate=units_per_s(trial, now, one.cell.unit) if trial and now else None,
            unit=one.cell.unit,
            left_s=self._time_left.seconds(left, one.cell.key, elapsed_s),
        )
